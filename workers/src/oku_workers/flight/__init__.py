"""The flight recorder of a worker: how far it has gone in its leases, where its death does not reach it."""
