"""Counts of requests, and states: of intervals, leases and runs."""
