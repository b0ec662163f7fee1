"""Data of a run, one row for each request: a file is scanned once, then any of its rows is found at once."""
