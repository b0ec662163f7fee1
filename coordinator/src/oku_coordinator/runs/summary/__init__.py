"""Makes the summary of a run from what the ledger keeps of it."""
