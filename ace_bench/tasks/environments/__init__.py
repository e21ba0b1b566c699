"""Tasks made of other packages' environments: ``verifiers`` and Inspect AI."""
