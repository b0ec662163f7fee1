"""Shows runs at rest: summaries and tables."""
