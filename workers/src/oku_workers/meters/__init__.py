"""What a worker measures of itself and of its executions while it has leases."""
