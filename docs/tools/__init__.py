"""Scripts that make what in docs/ is made from the code or from a run."""
