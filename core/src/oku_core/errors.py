"""The one error that a user can mend, and how its line shows the value that is wrong."""

import reprlib

_LONGEST = 80

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _LONGEST


class UserError(Exception):
    """What the user wrote or has set up is wrong.

    The message is one line with the place, the value and the allowed values; every process of Oku prints
    it without a traceback and ends with exit code 2.
    """


def format_value(value: object) -> str:
    """A value for such a line: as YAML and the command line write it; quoted and cut where it must be."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and _is_plain(value):
        return str(value)
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return "a number of thousands of digits"


def _is_plain(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable() and text == text.strip()
