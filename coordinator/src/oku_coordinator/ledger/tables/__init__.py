"""The rows of the ledger: all SQL that reads or writes them, a module for each kind."""
