"""The placeholders of a request: its index, columns of its row, and secrets that only the workers know.

A text that is to be sent as it is, and looks like one, has `{literal:` in the place of its brace.
"""

import re

from oku_core.data.columns import COLUMN_NAME, INDEX_NAME
from oku_core.errors import format_value
from oku_core.spec.values.body_bytes import FileText

INDEX_PLACEHOLDER = "{i}"
"""Stands for the index of the request in a URL, a header or a body."""
SECRET_PLACEHOLDER = re.compile(r"\{env:[A-Za-z_][A-Za-z0-9_]*\}|\{file:[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}\}")
"""Stands for a secret: an environment variable of the worker, or a file in its folder of secrets."""
NAMED_PLACEHOLDER = re.compile(r"\{(" + COLUMN_NAME.pattern + r")\}")
"""Stands for the index, or for a column of the data if there is one of that name."""
LITERAL_MARK = "{literal:"
"""Stands for a brace that begins no placeholder: `{literal:env:HOME}` is the text `{env:HOME}`."""
LITERAL_TEXT = re.compile(r"\{literal:[^{}]*\}")
"""A text in braces that is sent as it is."""
KNOWN_PLACEHOLDERS = "{i}, {env:NAME} and {file:NAME}"
"""All placeholders, as messages list them."""

_MEANS_SOMETHING = re.compile(r"\{(?=i\}|(?:env|file|literal):)")
_SECRET_BEGINS = re.compile(r"\{(?:env|file):[^{}\s]*\}?")


def check_secrets(text: str) -> None:
    """Raise `ValueError` if `text` contains a malformed placeholder of a secret."""
    for found in _SECRET_BEGINS.finditer(text):
        if not SECRET_PLACEHOLDER.fullmatch(found[0]):
            raise ValueError(
                f"{format_value(found[0])} is not of the form {{env:NAME}} or {{file:NAME}}; NAME may have "
                "letters, digits and _, the name of a file also . and -"
            )


def escape_literally(text: str) -> str:
    """A text of somebody else, as a spec says it: none of it is a placeholder, whatever it looks like."""
    return _MEANS_SOMETHING.sub(LITERAL_MARK, text)


def has_placeholders(text: str) -> bool:
    """Whether a text means something else than itself in a spec that has no columns."""
    return _MEANS_SOMETHING.search(text) is not None


def read_literally(text: str) -> str:
    """A text between placeholders, as it is sent."""
    if LITERAL_MARK not in text:
        return text
    content = text.replace(LITERAL_MARK, "{")
    return FileText(content) if isinstance(text, FileText) else content


def list_names(text: str) -> list[str]:
    """The names in braces that could be those of columns, in their order."""
    return [name for name in NAMED_PLACEHOLDER.findall(text) if name != INDEX_NAME]


def describe_unknown(shown: str, placeholder: str) -> str:
    """Say that a text has a placeholder that nothing is known for."""
    return f"{shown} has the unknown placeholder {format_value(placeholder)}; Oku knows {KNOWN_PLACEHOLDERS}"
