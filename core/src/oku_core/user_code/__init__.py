"""What a worker and the process that runs its user code say to each other."""
