"""The HTTP API: its routes, its port, and the limits on its connections."""
