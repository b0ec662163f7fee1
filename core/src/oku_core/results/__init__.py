"""The results of a run as they come: its seconds, its events and leases, and the lines for Loki on them."""
