"""A real Loki, one that plays faults, and what is asked of them."""
