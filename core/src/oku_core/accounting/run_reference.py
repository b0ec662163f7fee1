"""What may stand for a run where people name one: `latest`, an id, a name, or a part of an id.

An id is taken first, then `latest`, then a name, and a part of an id last.
"""

from oku_core.errors import format_value

LATEST = "latest"
"""Stands for the run that was submitted last."""


def check_reference(reference: str) -> None:
    """Raise `ValueError` if a text can stand for no run: every id has the empty text as a part."""
    if not reference.strip():
        raise ValueError(f"is empty; give {LATEST}, an id, a name, or a part of an id")
    if not reference.isprintable():
        raise ValueError(f"{format_value(reference)} is not printable text")
