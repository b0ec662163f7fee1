"""The load that faults are tried on: it leaves the processors idle enough for them."""

WINDOW = 25
"""Requests in flight of each worker."""
LOAD = ("--concurrency", str(2 * WINDOW), "--delay", "5ms..50ms", "--workers", "2")
"""About 1,800 requests a second over two workers."""
