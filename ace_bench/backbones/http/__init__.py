"""HTTP to one server: a request goes out, its whole reply comes back. Nothing here knows of models."""
