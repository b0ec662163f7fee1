"""Begins runs and follows them until they rest, on a local stack or at a coordinator."""
