"""Measures of the source tree, and ceilings that only fall."""
