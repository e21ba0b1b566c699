"""Reads finished run folders, for tables, figures and pages; reads the store only."""
