"""Reads recordings of browsers (HAR 1.2)."""
