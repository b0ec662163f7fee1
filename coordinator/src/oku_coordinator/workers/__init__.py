"""The coordinator's view of the workers: liveness, reporting intervals, and assignment to runs."""
