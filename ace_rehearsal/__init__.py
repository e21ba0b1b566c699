"""Stand-ins, so that everything can be tried for free: the embedded reader, sample sets, AppWorld's mini-world."""
