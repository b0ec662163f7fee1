"""The worker's way over the broker: the task of a lease, and the orders of the coordinator."""
