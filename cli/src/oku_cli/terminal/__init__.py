"""Writes text, tables and JSON to a terminal, a file or a pipe, none of which it obeys."""
