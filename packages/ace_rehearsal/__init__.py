"""Stand-ins for trying everything for free: the embedded reader, sample sets, AppWorld's mini-world."""
