"""The local viewer of a results folder: what it serves, the server, and the same as a static site."""
