"""Turns of contestants at a target: `oku run` and other load generators, nginx and delay servers."""
