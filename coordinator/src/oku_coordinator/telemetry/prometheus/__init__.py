"""Metrics for Prometheus: of the coordinator itself, and of the newest runs and their targets."""
