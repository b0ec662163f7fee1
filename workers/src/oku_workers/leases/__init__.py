"""How a worker runs leases: each is begun, served by the engine, stopped where it must be, and told of."""
