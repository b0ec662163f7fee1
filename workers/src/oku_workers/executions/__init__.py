"""Attempts at leases: the positions taken, the counts of outcomes, and the contents of checkpoints."""
