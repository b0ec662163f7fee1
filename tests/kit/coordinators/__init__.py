"""Real coordinators and the ledgers that they start with."""
