"""The HTTP API: its routes, its port, and what bounds the connections to it."""
