"""Messages that a worker receives from the broker: leases, and orders of the coordinator."""
