"""Builds the summary of a run from the ledger."""
