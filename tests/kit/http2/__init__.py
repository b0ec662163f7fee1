"""Servers of HTTP/2, well-behaved and hostile, and the frames that they are made of."""
