"""The coordinator: the ledger of every run, and what deals out its ranges and takes in checkpoints."""
