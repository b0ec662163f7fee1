"""The worker: takes leases from the broker, keeps requests in flight, and tells what came of them."""
