"""The rows of the ledger: all SQL that reads or writes them, one module per kind."""
