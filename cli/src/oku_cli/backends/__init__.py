"""How commands talk to runs: over the API of a coordinator, or in the ledger of a data folder at rest."""
