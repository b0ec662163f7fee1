"""The worker: takes leases from the broker, keeps requests in flight, and reports their outcomes."""
