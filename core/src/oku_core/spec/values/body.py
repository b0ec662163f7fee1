"""The body of a spec: which text it may be, and whether it is JSON."""

import msgspec

from oku_core.spec.values.placeholder import INDEX_PLACEHOLDER, SECRET_PLACEHOLDER, check_secrets
from oku_core.spec.values.scalar import parse_text


def parse_body(value: object) -> str:
    """Parse a body: any text, with or without placeholders."""
    body = parse_text(value)
    check_secrets(body)
    return body


def is_json(body: str) -> bool:
    """Whether a body is a JSON object or array once its placeholders are replaced, be it by numbers."""
    if not body.lstrip().startswith(("{", "[")):
        return False
    text = SECRET_PLACEHOLDER.sub("0", body.replace(INDEX_PLACEHOLDER, "0"))
    try:
        return isinstance(msgspec.json.decode(text), dict | list)
    except (msgspec.DecodeError, RecursionError):
        return False
