"""How a closed run is dealt: how large leases are, each worker's share, and what moves between workers."""
