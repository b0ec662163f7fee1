"""The placeholders of a request: `{i}` for its index, others for secrets that only the workers know."""

import re
from collections.abc import Callable

from oku_core.errors import format_value

INDEX_PLACEHOLDER = "{i}"
"""Stands for the index of the request in a URL, a header or a body."""
SECRET_PLACEHOLDER = re.compile(r"\{env:[A-Za-z_][A-Za-z0-9_]*\}|\{file:[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}\}")
"""Stands for a secret: an environment variable of the worker, or a file in its folder of secrets."""
KNOWN_PLACEHOLDERS = "{i}, {env:NAME} and {file:NAME}"
"""All placeholders, as messages list them."""

_SECRET_BEGINS = re.compile(r"\{(?:env|file):[^{}\s]*\}?")


def check_secrets(text: str) -> None:
    """Raise `ValueError` if `text` contains a malformed placeholder of a secret."""
    for found in _SECRET_BEGINS.finditer(text):
        if not SECRET_PLACEHOLDER.fullmatch(found[0]):
            raise ValueError(
                f"{format_value(found[0])} is not of the form {{env:NAME}} or {{file:NAME}}; NAME may have "
                "letters, digits and _, the name of a file also . and -"
            )


def build_template(text: str) -> Callable[[int], str]:
    """Build a function that maps an index to `text` with every `{i}` replaced by that index."""
    parts = text.split(INDEX_PLACEHOLDER)
    if len(parts) == 1:
        return lambda _: text
    if len(parts) == 2:
        before, after = parts
        return lambda index: f"{before}{index}{after}"
    return lambda index: str(index).join(parts)


def is_constant(text: str) -> bool:
    """Whether `text` is the same for every index."""
    return INDEX_PLACEHOLDER not in text
