"""The files of runs: stored beside the ledger and served to workers."""
