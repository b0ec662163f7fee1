"""Confines the process of user code, and loads user code in it."""
