"""Metrics for Prometheus: those of the coordinator itself, and those of the newest runs and their targets."""
