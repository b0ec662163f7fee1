"""The file of the ledger: its schema, its transactions, what they sum up, and its rows as types."""
