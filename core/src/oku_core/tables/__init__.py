"""Builds the tables of a run, once for the terminal, the report, Markdown and the API."""
