"""What is written of a benchmark: its numbers, its pictures, the summary of a run."""
