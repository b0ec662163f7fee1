"""What whoever waits for a benchmark sees."""

import sys


def log(line: str) -> None:
    """Show a line at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
