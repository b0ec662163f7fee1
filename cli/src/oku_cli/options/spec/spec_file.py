"""Reads a spec file as a mapping of its keys to values, within a bounded time and size.

A scalar means what the same text means as a flag: only `null`, `true` and `false` are more than text, so that
`010`, `1.10`, `no` and `2020-01-01` stay as written. Aliases and tags are refused (decision 25).
"""

from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

from oku_cli.options.spec.input_file import (
    STANDARD_INPUT,
    STANDARD_INPUT_LABEL,
    StreamedSpec,
    is_stream,
    read_input,
)
from oku_cli.yaml_reader import YamlKind, decode_yaml, decode_yaml_or_json
from oku_core.errors import UserError
from oku_core.json_reader import decode_json
from oku_core.spec.parser import Source
from oku_core.spec.values.scalar import PlainScalar

# The body of a target may have 32 levels, from the fifth on. A file may repeat a scalar half a million times.
SPEC_FILE = YamlKind(deepest=40, read_plain=lru_cache(maxsize=1024)(PlainScalar))


def read_spec_file(name: str, files_dir: Path | None = None) -> Source:
    """A YAML file as a source of values, or JSON if it is called so; `-` is either on standard input.

    A spec that is streamed may name files of `files_dir`.

    Raises:
        UserError: it cannot be read, is too large, or does not match its name.
    """
    label = STANDARD_INPUT_LABEL if name == STANDARD_INPUT else name
    content = read_input(name, label)
    try:
        values = _decode(content, name)
    except ValueError as error:
        raise UserError(f"{label}: {error}") from error
    values = {} if values is None else values  # an empty file has no keys
    return StreamedSpec(label, values, files_dir=files_dir) if is_stream(name) else Source(label, values)


def _decode(content: bytes, name: str) -> Any:
    if PurePath(name).suffix == ".json":
        return decode_json(content)
    if name != STANDARD_INPUT:
        return decode_yaml(content, SPEC_FILE)
    if not content.strip():
        # The program that writes it has failed; a run of all defaults would be a surprise.
        raise ValueError("is empty, a spec is expected")
    return decode_yaml_or_json(content, SPEC_FILE)
