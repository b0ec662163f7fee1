"""The leases of a worker: fed to the engine request by request, and what came of each."""
