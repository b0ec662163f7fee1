"""Dealing of closed runs: sizes of leases, shares of workers, and work that moves between them."""
