"""Finds and calls a coordinator, and follows its runs."""
