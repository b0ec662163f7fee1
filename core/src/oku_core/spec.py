"""The spec: the immutable description of a run, and the one table that flags, files and the API read it by.

`parse_spec` takes what users wrote (command line, YAML, JSON) and gives a `Spec` or a `SpecError` of one line
that names the place, the value and what is allowed. `FIELDS` is that table: the command line makes its
options from it, so that a key has the same name and the same meaning everywhere.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from oku_core.delay import parse_delay
from oku_core.errors import UserError, format_value
from oku_core.quantity import parse_count, parse_duration_s
from oku_core.target import INDEX_PLACEHOLDER as INDEX_PLACEHOLDER  # noqa: PLC0414  # a word of the spec, too
from oku_core.target import parse_expect_status, parse_headers, parse_method, parse_text, parse_urls


class Engine(StrEnum):
    """What sends the requests of a worker."""

    AIOHTTP = "aiohttp"


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is. See `FIELDS` for what each attribute means."""

    requests: int = 100_000
    urls: tuple[str, ...] = ()
    method: str = "GET"
    headers: tuple[str, ...] = ()
    body: str | None = None
    concurrency: int = 100
    workers: int | None = None
    engine: Engine = Engine.AIOHTTP
    timeout_s: float = 10.0
    grace_s: float | None = None
    expect_status: tuple[str, ...] = ("200",)
    range_size: int | None = None
    servers: int | None = None
    delay: str = "0s"
    seed: int = 0
    name: str = ""

    @property
    def drain_s(self) -> float:
        """How long requests in flight may go on when the run is stopped: at most until their timeout."""
        return self.timeout_s if self.grace_s is None else self.grace_s

    @property
    def brings_servers(self) -> bool:
        """Whether the target is Oku's own delay servers."""
        return not self.urls


class SpecError(UserError):
    """What a user wrote is wrong; the message is one line for that user."""


@dataclass(frozen=True)
class Source:
    """One place that values come from; `label` is None for the command line."""

    label: str | None
    values: Mapping[str, object]

    def place(self, key: str) -> str:
        """How to name `key` of this source to its writer."""
        return f"--{key}" if self.label is None else f"{self.label}: {key}"


@dataclass(frozen=True)
class Field:
    """One key of a spec: its name for users, the attribute it fills, how it is read, what it means."""

    key: str
    attribute: str
    parse: Callable[[Any], Any]
    metavar: str
    help: str
    repeatable: bool = False
    own_servers_only: bool = False


def parse_spec(*sources: Source) -> Spec:
    """Make a spec of several sources, later ones overriding earlier ones key by key.

    Raises:
        SpecError: a source is no mapping, a key is unknown or stands there twice, a value is not allowed, or
            two keys exclude each other.
    """
    given: dict[str, tuple[Source, object]] = {}
    for source in sources:
        given |= {key: (source, value) for key, value in _read_source(source).items()}
    values: dict[str, Any] = {}
    for key, (source, value) in given.items():
        field = _FIELD_BY_KEY[key]
        try:
            values[field.attribute] = field.parse(value)
        except ValueError as error:
            raise SpecError(f"{source.place(key)}: {error}") from error
    _check_own_servers(given)
    return Spec(**values)


def build_mapping(spec: Spec) -> dict[str, Any]:
    """The spec under the names of `FIELDS`; `parse_spec` reads it back to an equal spec."""
    mapping: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(spec, field.attribute)
        if value is None or value == () or (field.own_servers_only and not spec.brings_servers):
            continue
        if isinstance(value, tuple):
            value = list(value)
        mapping[field.key] = value.value if isinstance(value, Engine) else value
    return mapping


def build_expected_statuses(spec: Spec) -> frozenset[int]:
    """The status codes that count as `ok`; `2xx` stands for a hundred of them."""
    codes: set[int] = set()
    for item in spec.expect_status:
        if item.endswith("xx"):
            codes.update(range(int(item[0]) * 100, int(item[0]) * 100 + 100))
        else:
            codes.add(int(item))
    return frozenset(codes)


def _read_source(source: Source) -> dict[str, object]:
    if not isinstance(source.values, Mapping):
        place = source.label or "command line"
        raise SpecError(f"{place}: {format_value(source.values)} is not a mapping of keys to values")
    values: dict[str, object] = {}
    for written, value in source.values.items():
        key = str(written).replace("_", "-")
        if key not in _FIELD_BY_KEY:
            raise SpecError(f"{source.place(format_value(written))}: unknown key{_suggest(key)}")
        if key in values:
            raise SpecError(f"{source.place(key)}: is given twice")
        values[key] = value
    return values


def _count(low: int, high: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        number = parse_count(value)
        if number < low:
            raise ValueError(f"{format_value(value)} is not at least {low}")
        if number > high:
            raise ValueError(f"{format_value(value)} is not at most {high:_}")
        return number

    return parse


def _duration(low_s: float, low_text: str) -> Callable[[object], float]:
    def parse(value: object) -> float:
        seconds = parse_duration_s(value)
        if seconds < low_s:
            raise ValueError(f"{format_value(value)} is not at least {low_text}")
        if seconds > 3600:
            raise ValueError(f"{format_value(value)} is not at most 1h")
        return seconds

    return parse


def _engine(value: object) -> Engine:
    try:
        return Engine(parse_text(value))
    except ValueError:
        raise ValueError(f"{format_value(value)} is not one of {', '.join(Engine)}") from None


def _delay(value: object) -> str:
    return parse_delay(value).text


def _name(value: object) -> str:
    name = parse_text(value)
    if len(name) > 100 or not name.isprintable():
        raise ValueError(f"{format_value(name)} is not a name of up to 100 printable characters")
    return name


def _suggest(key: str) -> str:
    near = difflib.get_close_matches(key, _FIELD_BY_KEY, n=1)
    return f", did you mean {near[0]}?" if near else f", known are {', '.join(_FIELD_BY_KEY)}"


def _check_own_servers(given: Mapping[str, tuple[Source, object]]) -> None:
    if "url" not in given:
        return
    for field in FIELDS:
        if field.own_servers_only and field.key in given:
            place = given[field.key][0].place(field.key)
            raise SpecError(f"{place}: is for Oku's own delay servers, it does not go together with url")


FIELDS: tuple[Field, ...] = (
    Field("requests", "requests", _count(1, 10**15), "N", "How many requests: 50000, 1_000_000, 1e6, 1M."),
    Field(
        "url", "urls", parse_urls, "URL",
        "Target; {i} is the index of the request. Several are used in turn, index by index. "
        "Without it, Oku brings its own delay servers.",
        repeatable=True,
    ),
    Field("method", "method", parse_method, "METHOD", "HTTP method."),
    Field(
        "header", "headers", parse_headers, "'NAME: VALUE'", "Header to send; {i} is the index.",
        repeatable=True,
    ),
    Field("body", "body", parse_text, "TEXT", "Body to send; {i} is the index."),
    Field("concurrency", "concurrency", _count(1, 1_000_000), "N", "Requests in flight, for each worker."),
    Field(
        "workers", "workers", _count(1, 10_000), "N",
        "How many workers; half the processors unless given.",
    ),
    Field("engine", "engine", _engine, "ENGINE", "What sends the requests: aiohttp."),
    Field(
        "timeout", "timeout_s", _duration(0.001, "1ms"), "DURATION",
        "Longest time for one request, connecting included.",
    ),
    Field(
        "grace", "grace_s", _duration(0, "0s"), "DURATION",
        "Longest time for requests in flight when a run is stopped; the timeout unless given.",
    ),
    Field(
        "expect-status", "expect_status", parse_expect_status, "STATUS",
        "Statuses that count as ok: 200, 2xx, 200,404.",
        repeatable=True,
    ),
    Field(
        "range-size", "range_size", _count(1, 10**9), "N",
        "Requests of one lease; else it adapts to about 10 s of work.",
    ),
    Field(
        "servers", "servers", _count(1, 1_000), "N",
        "How many delay server processes; half the processors unless given.",
        own_servers_only=True,
    ),
    Field(
        "delay", "delay", _delay, "DELAY",
        "Delay of the delay servers: 20ms, 0..3s, 5ms..80ms, exp:50ms, lognormal:40ms,0.5.",
        own_servers_only=True,
    ),
    Field(
        "seed", "seed", _count(0, 2**63 - 1), "N",
        "Seed of the delays: the same seed gives the same delays.",
        own_servers_only=True,
    ),
    Field("name", "name", _name, "TEXT", "What to call the run."),
)  # fmt: skip
"""Every key of a spec, in the order in which help shows them."""

_FIELD_BY_KEY: Mapping[str, Field] = {field.key: field for field in FIELDS}
