"""A real broker, and the key of its messages."""
