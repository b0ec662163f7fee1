"""What an engine is, and what it gets: the same for every engine."""
