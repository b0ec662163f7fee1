"""JSON pointers (RFC 6901): the way to a value within a document."""

from oku_core.digits import parse_digits


def find_value(document: object, pointer: str) -> object:
    """The value that a pointer leads to; the whole document if the pointer is empty.

    Raises:
        LookupError: there is nothing there.
        ValueError: this is not a JSON pointer.
    """
    if not pointer:
        return document
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is not a JSON pointer such as /items/0/id")
    value = document
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[key]
        elif isinstance(value, list) and (place := parse_digits(key)) is not None and key == f"{place}":
            value = value[place]
        else:
            raise LookupError(pointer)
    return value
