"""Rules for leased requests: intake, return, expiry, and the account of unsent ones."""
