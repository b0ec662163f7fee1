"""Each attempt at a lease: what is taken of it, what came of that, and what its checkpoints tell."""
