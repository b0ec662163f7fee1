"""The body of a spec: which text it may be, and what its `Content-Type` is."""

import re

from oku_core.json_reader import JsonError, decode_document
from oku_core.spec.values.file_reference import find_file_reference
from oku_core.spec.values.placeholder import (
    INDEX_PLACEHOLDER,
    SECRET_PLACEHOLDER,
    check_secrets,
    read_literally,
)
from oku_core.spec.values.scalar import parse_text

MOST_BODY_BYTES = 64 << 20
"""The largest body; a worker has it in memory once, or with a placeholder for each request in flight."""
_FORM_PAIR = r"[\w.~%+*\[\]-]++=[\w.~%+*\[\]@:/,-]*+"
_FORM = re.compile(f"{_FORM_PAIR}(?:&{_FORM_PAIR})*+", re.ASCII)
"""The characters of an encoded form, and those that people leave as they are in one."""
JSON_TYPE = "application/json"


def parse_body(value: object) -> str:
    """Parse a body: any text, with or without placeholders, or the file of the run that has it."""
    body = parse_text(value)
    if reference := find_file_reference(body):
        if reference.size > MOST_BODY_BYTES:
            raise ValueError(f"{reference.name} is larger than {MOST_BODY_BYTES >> 20} MiB")
        return body
    check_secrets(body)
    return body


def find_body_type(body: str) -> str | None:
    """The `Content-Type` of a JSON object or array, or a form, once placeholders are replaced, or None.

    Of a file, whose content is not here, the name tells it.
    """
    if reference := find_file_reference(body):
        return JSON_TYPE if reference.name.endswith(".json") else None
    text = read_literally(SECRET_PLACEHOLDER.sub("0", body.replace(INDEX_PLACEHOLDER, "0")))
    if _is_json(text):
        return JSON_TYPE
    if _FORM.fullmatch(text):
        return "application/x-www-form-urlencoded"
    return None


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        return isinstance(decode_document(text), dict | list)
    except JsonError:
        return False
