"""The authors' code and this harness over the same scripted replies; `make test-official OFFICIAL=DIR`."""
