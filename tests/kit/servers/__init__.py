"""Targets, well-behaved and hostile, and what stands between them and an engine."""
