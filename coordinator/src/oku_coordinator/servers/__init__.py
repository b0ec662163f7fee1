"""Oku's own delay servers, as far as they make up the figures of a run."""
