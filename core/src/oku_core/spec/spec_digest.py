"""The digest of a spec: equal for specs that ask for the same, however they are written.

Only values that differ from the defaults count, so a key that a newer Oku adds changes no digest. Rates,
durations, headers and thresholds count by what they mean, and files of the run by their content.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import singledispatch
from types import NoneType
from typing import Any

import msgspec

from oku_core.spec.data_file import DataFile
from oku_core.spec.fields import FIELDS
from oku_core.spec.files import TLS_FILE_KEYS
from oku_core.spec.spec import Spec
from oku_core.spec.values.delay import Delay
from oku_core.spec.values.file_reference import CodeFile, find_file_reference
from oku_core.spec.values.url import Url

_KEYS_OF_FILES = {*TLS_FILE_KEYS, "body"}
"""The attributes that may name a file of the run, where they are text."""


def digest_spec(spec: Spec) -> str:
    """The SHA-256, in hexadecimal."""
    canonical = json.dumps(_build_canonical(spec), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def list_differing_keys(one: Spec, other: Spec) -> list[str]:
    """The keys by which two specs with different digests differ, in the order of the documents."""
    first, second = _build_canonical(one), _build_canonical(other)
    differing = {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}
    return [field.key for field in FIELDS if field.attribute in differing and not field.alias_of]


def _build_canonical(struct: msgspec.Struct) -> dict[str, Any]:
    """The attributes that differ from their defaults, each as JSON that is the same for the same meaning."""
    given = {
        field.name: value
        for field in msgspec.structs.fields(struct)
        if (value := getattr(struct, field.name)) != field.default
    }
    return {
        name: _build_file(value) if name in _KEYS_OF_FILES and isinstance(value, str) else _build_value(value)
        for name, value in given.items()
    }


@singledispatch
def _build_value(value: object) -> Any:
    """An exact number, a range, or the function that compares sizes."""
    return getattr(value, "__name__", str(value))


@_build_value.register(int)
@_build_value.register(float)
@_build_value.register(NoneType)
def _build_scalar(value: float | None) -> Any:
    return value


@_build_value.register
def _build_text(value: str) -> Any:
    """A text itself, or the parts that a type of ours has read from it."""
    parts = [name for name in getattr(type(value), "__slots__", ()) if not name.startswith("_")]
    return [_build_value(getattr(value, name)) for name in sorted(parts)] or str(value)


@_build_value.register(Delay)
@_build_value.register(Url)
def _build_whole(value: str) -> Any:
    return str(value)


@_build_value.register
def _build_code(value: CodeFile) -> Any:
    return [value.path, value.file.digest]


@_build_value.register
def _build_data(value: DataFile) -> Any:
    return [value.format, value.digest, value.repeat]


@_build_value.register(msgspec.Struct)
def _build_struct(value: msgspec.Struct) -> Any:
    return _build_canonical(value)


@_build_value.register(tuple)
@_build_value.register(list)
def _build_list(value: Sequence[object]) -> Any:
    return [_build_value(item) for item in value]


@_build_value.register
def _build_set(value: frozenset) -> Any:  # type: ignore[type-arg]  # dispatched by it
    return sorted(map(str, value))


@_build_value.register(dict)
def _build_object(value: Mapping[str, object]) -> Any:
    return {name: _build_value(item) for name, item in value.items()}


def _build_file(text: str) -> str:
    reference = find_file_reference(text)
    return text if reference is None else f"@{reference.digest}"
