"""A random campaign against real local runs: what a seed draws, how it is done, and what must hold then."""
