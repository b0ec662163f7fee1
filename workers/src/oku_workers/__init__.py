"""The worker: takes leases from the broker, keeps requests in flight, reports what came of them."""
