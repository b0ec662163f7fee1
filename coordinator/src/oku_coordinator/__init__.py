"""The coordinator: keeps the ledger of every run, deals ranges to workers, and records checkpoints."""
