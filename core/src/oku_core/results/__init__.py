"""What came of a run: histograms, its history, its summary."""
