"""What a worker hears from the broker: leases, and orders of the coordinator."""
