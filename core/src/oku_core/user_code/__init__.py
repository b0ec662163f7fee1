"""Messages between a worker and the process that runs its user code."""
