"""What a user sees of runs at rest: summaries and tables."""
