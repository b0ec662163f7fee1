"""The results of a run: its samples, its events, its validity and its summary."""
