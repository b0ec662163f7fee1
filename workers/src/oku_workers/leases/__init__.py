"""How a worker runs leases: it starts each, feeds the engine, stops leases early, and sends checkpoints."""
