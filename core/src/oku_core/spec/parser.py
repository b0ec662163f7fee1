"""Parses what users wrote (command line, YAML, JSON) into a spec.

The result is a `Spec`, or a `SpecError` whose one line names the place, the value and the allowed values.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from oku_core.data.data_format import WHOLE_ROW
from oku_core.errors import UserError, format_value
from oku_core.spec.data_file import DataFile, build_data_mapping
from oku_core.spec.fields import FIELD_BY_KEY, FIELDS, Field
from oku_core.spec.load import Fault, complete_load, find_default_concurrency, list_stages
from oku_core.spec.rules import iter_faults, iter_row_faults
from oku_core.spec.spec import OPEN_END, URL_REQUESTS, Engine, Spec
from oku_core.spec.target import add_content_type, suggest
from oku_core.spec.values.request_content import CLOSE, Header, find_body_type

_PLACES = ("urls", "base_url", "targets", "engine")
"""The attributes that define where requests go, or that user code sends them."""


class SpecError(UserError):
    """What the user wrote is wrong; the message is one line for that user."""


@dataclass(frozen=True)
class Source:
    """One place where values come from.

    Attributes:
        label: the name of the place, such as a file; None for the command line.
        values: what the user wrote there, by key.
        aliases: of keys that stand there under another name, that name.
    """

    label: str | None
    values: Mapping[str, object]
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def written(self) -> Mapping[str, object]:
        """Its values by keys as documents write them; `parse_spec` refuses anything but a mapping."""
        values: object = self.values
        if not isinstance(values, Mapping):
            return {}
        return {_write_key(key): value for key, value in values.items()}

    def drop(self, keys: Collection[str]) -> "Source":
        """The source without these keys, however they are written."""
        if not self.written:
            return self
        return replace(
            self, values={key: value for key, value in self.values.items() if _write_key(key) not in keys}
        )

    def place(self, key: str) -> str:
        """How an error message names `key` of this source."""
        key = self.aliases.get(key, key)
        if self.label is not None:
            return f"{self.label}: {key}"
        field = FIELD_BY_KEY.get(key)
        return f"--{field.long_flag if field else key}"


_Given = dict[str, tuple[Source, object]]
"""Values with where they were given, by key."""


def _write_key(key: object) -> str:
    return str(key).replace("_", "-")


def parse_spec(*sources: Source) -> Spec:
    """Build a spec from several sources; later ones override earlier ones key by key.

    Raises:
        SpecError: a source is not a mapping, a key is unknown or given twice, a value is not allowed, or two
            keys exclude each other.
    """
    given: _Given = {}
    for source in sources:
        given |= {key: (source, value) for key, value in _read_source(source).items()}
    given, renamed = _resolve_aliases(given)
    values: dict[str, Any] = {}
    for key, (source, value) in given.items():
        field = FIELD_BY_KEY[key]
        try:
            values[field.attribute] = field.parse(value)
        except ValueError as error:
            raise SpecError(f"{source.place(key)}: {error}") from error
    spec = Spec(**_add_defaults(values))
    _refuse(iter_faults(spec, given.keys() | renamed), given)
    complete = complete_load(spec, given.keys())
    _refuse(iter_row_faults(complete), given)
    return complete


def _resolve_aliases(given: _Given) -> tuple[_Given, set[str]]:
    """Values by their own keys, without aliases; and the aliases that were given."""
    resolved, renamed = dict(given), set()
    for key in given:
        if not (name := FIELD_BY_KEY[key].alias_of):
            continue
        source, value = resolved.pop(key)
        if name in given:
            raise SpecError(f"{source.place(key)}: cannot be combined with {name}, which is the same")
        resolved[name] = replace(source, aliases={name: key}), value
        renamed.add(key)
    return resolved, renamed


def build_mapping(spec: Spec) -> dict[str, Any]:
    """Write a spec as a mapping with the keys of `FIELDS`; `parse_spec` turns it back into an equal spec."""
    mapping: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(spec, field.attribute)
        if value is None or value == () or not _applies(field, spec):
            continue
        mapping[field.key] = list(map(field.write, value)) if isinstance(value, tuple) else _as_plain(value)
    return mapping


def _applies(field: Field, spec: Spec) -> bool:
    """Whether a key adds anything to the other keys of a spec."""
    if field.attribute == "concurrency":
        follows = bool(list_stages(spec)) and spec.concurrency == find_default_concurrency(spec)
        return (field.key == "users") == spec.runs_user_code and not follows
    if field.alias_of or (spec.runs_user_code and spec.engine in field.refusals):
        return False
    if field.key == "requests":
        return not (spec.is_timed and spec.requests == OPEN_END)
    if field.key == "method":
        return not spec.targets
    return (
        (spec.brings_servers or not field.own_servers_only)
        and (spec.is_open or not field.rate_only)
        and (spec.http2 or field.engines != (Engine.NGHTTP2,))
    )


def _as_plain(value: object) -> object:
    if isinstance(value, DataFile):
        return build_data_mapping(value)
    return str(value) if isinstance(value, str) else value


def _read_source(source: Source) -> dict[str, object]:
    if not isinstance(source.values, Mapping):
        place = source.label or "command line"
        raise SpecError(f"{place}: {format_value(source.values)} is not a mapping of keys to values")
    values: dict[str, object] = {}
    for written, value in source.values.items():
        key = _write_key(written)
        if key not in FIELD_BY_KEY:
            raise SpecError(f"{source.place(format_value(written))}: unknown key{suggest(key, FIELD_BY_KEY)}")
        if key in values:
            raise SpecError(f"{source.place(key)}: is given twice")
        values[key] = value
    return values


def _add_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """Add the values that follow from others; a spec that is written and read again has them already."""
    added: dict[str, Any] = {}
    if values.get("engine") is None:
        values = {key: value for key, value in values.items() if key != "engine"}
    if values.get("http2") or values.get("engine") is Engine.NGHTTP2:
        added |= {"http2": True, "engine": Engine.NGHTTP2}
    if not Spec(**{key: values[key] for key in _PLACES if key in values}).brings_servers:
        added["requests"] = URL_REQUESTS
    if "data" in values:
        added["requests"] = values["data"].rows
    if (body := values.get("body")) is not None:
        added["method"] = "POST"
        headers = values.get("headers", ())
        kind = find_body_type(body, *_list_columns(values.get("data")))
        if kind and not any(header.is_named("content-type") for header in headers):
            values = values | {"headers": (*headers, Header(f"Content-Type: {kind}"))}
    if not values.get("keepalive", True):
        headers = values.get("headers", ())
        if not any(header.is_named("connection") for header in headers):
            values = values | {"headers": (*headers, CLOSE)}
    if targets := values.get("targets"):
        headers, columns = values.get("headers", ()), _list_columns(values.get("data"))
        values = values | {
            "targets": tuple(add_content_type(target, headers, *columns) for target in targets)
        }
    return added | values


def _list_columns(data: DataFile | None) -> tuple[Collection[str], str]:
    """What placeholders of a body may stand for, and which of them is a whole row; empty if none is."""
    if data is None:
        return (), ""
    return data.placeholders, WHOLE_ROW if data.placeholders != data.columns else ""


def _refuse(faults: Iterable[Fault], given: _Given) -> None:
    for name, reason in faults:
        key = FIELD_BY_KEY[name].alias_of or name
        raise SpecError(f"{given[key][0].place(key)}: {reason}")
