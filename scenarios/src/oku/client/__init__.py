"""The HTTP/1.1 client of scenarios, which keeps its connections."""
