"""The file of the ledger: its schema, its transactions, its running sums, and its rows as types."""
