"""Programs that write the sample sets; every wording in them is the project's own."""
