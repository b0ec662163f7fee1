"""Whole numbers as programs write them for each other: a bounded number of ASCII digits and nothing else.

Python's `int` also takes blanks, signs, underscores, the digits of other scripts, and numbers of any size.
"""

MOST_SQLITE = 2**63 - 1
"""The largest integer of SQLite, and of most other programs."""


def parse_digits(text: str | bytes, most: int = MOST_SQLITE) -> int | None:
    """The number in a text; None if the text is anything else, or the number is larger than `most`."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        return None
    return number if (number := int(text)) <= most else None
