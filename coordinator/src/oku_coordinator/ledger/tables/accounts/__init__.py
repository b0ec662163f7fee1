"""Counts: the accounts of a run and of its parts, its failures, its seconds, and its workers."""
