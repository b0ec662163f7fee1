"""What a message, a state or the loss of a worker changes in the ledger, and the law that holds after it."""
