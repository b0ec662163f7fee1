"""Writes values as JSON that a terminal can show: indented, with control characters escaped.

This module stands apart from `printable` because the image of the delay server has no msgspec.
"""

import sys

import msgspec

from oku_cli.terminal.printable import escape_json, needs_ascii


def build_json(value: object, *, is_ascii: bool = False) -> bytes:
    """Encode a value as indented JSON without control characters, or as nothing but ASCII."""
    document = msgspec.json.format(msgspec.json.encode(value), indent=2)
    return escape_json(document, is_ascii=is_ascii) + b"\n"


def print_json(value: object) -> None:
    """Write a value as JSON to standard output."""
    sys.stdout.buffer.write(build_json(value, is_ascii=needs_ascii()))
    sys.stdout.flush()
