"""One request of a run: built as its worker built it, and sent once more."""
