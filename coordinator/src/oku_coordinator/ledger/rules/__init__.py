"""The rules of the ledger: how messages, states and lost workers change it, and the law of conservation."""
