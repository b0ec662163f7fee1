"""What engines work on: the feed of indices, each execution of a lease, and what is measured of it."""
