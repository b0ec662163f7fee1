"""Oku's own delay servers, as a source of the figures of a run."""
