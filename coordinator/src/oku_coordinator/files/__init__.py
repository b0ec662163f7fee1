"""The files of runs: kept beside the ledger, and given to workers."""
