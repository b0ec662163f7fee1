"""One request of a run: what it is, as its worker made it, and what comes of sending it once more."""
