"""Workers: without a broker, with faults, measured, and simulated."""
