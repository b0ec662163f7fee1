"""What keeps a benchmark from being measured."""


class BenchmarkError(Exception):
    """One line for whoever started it."""
