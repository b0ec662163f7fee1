"""The table of all keys of a spec: what each one means, and how its value is parsed.

Flags, files and the API all read specs by this table, and the command line builds its options from it, so a
key has the same name and the same meaning everywhere.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oku_core.errors import format_value
from oku_core.spec.spec import Engine
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.expected_status import parse_expect_status
from oku_core.spec.values.header import parse_headers
from oku_core.spec.values.placeholder import parse_body
from oku_core.spec.values.quantity import parse_count, parse_duration_s
from oku_core.spec.values.scalar import parse_text
from oku_core.spec.values.url import parse_proxy, parse_urls


@dataclass(frozen=True)
class Field:
    """One key of a spec.

    Attributes:
        key: the name that users write.
        attribute: the attribute of `Spec` that the key sets.
        parse: turns what the user wrote into the value of the attribute, or raises `ValueError`.
        metavar: the placeholder for a value in the help of the command line.
        help: what the key means, in one sentence.
        repeatable: whether the key takes several values.
        own_servers_only: whether the key applies only to Oku's own delay servers.
        is_switch: whether the key is a flag without a value.
        aiohttp_only: whether only the aiohttp engine supports the key.
    """

    key: str
    attribute: str
    parse: Callable[[Any], Any]
    metavar: str
    help: str
    repeatable: bool = False
    own_servers_only: bool = False
    is_switch: bool = False
    aiohttp_only: bool = False


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


def _method(value: object) -> str:
    method = parse_text(value)
    if not re.fullmatch(r"[A-Za-z]+", method) or method.upper() == "CONNECT":
        raise ValueError(f"{format_value(value)} is not a method such as GET or POST")
    return method.upper()


def _name(value: object) -> str:
    name = parse_text(value)
    if len(name) > 100 or not name.isprintable():
        raise ValueError(f"{format_value(name)} is not a name of up to 100 printable characters")
    return name


def _path(value: object) -> str:
    path = parse_text(value)
    if not path or not path.isprintable():
        raise ValueError(f"{format_value(path)} is not the path of a file")
    return path


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{format_value(value)} is not true or false")  # noqa: TRY004  # the input is wrong, not the call
    return value


FIELDS: tuple[Field, ...] = (
    Field("requests", "requests", _count(1, 10**15), "N", "Number of requests: 50000, 1_000_000, 1e6, 1M."),
    Field(
        "url", "urls", parse_urls, "URL",
        "Target; {i} is the index of the request. Several URLs are used in turn, index by index. "
        "Without a URL, Oku uses its own delay servers.",
        repeatable=True,
    ),
    Field("method", "method", _method, "METHOD", "HTTP method."),
    Field(
        "header", "headers", parse_headers, "'NAME: VALUE'", "Header to send; {i} is the index.",
        repeatable=True,
    ),
    Field("body", "body", parse_body, "TEXT", "Body to send; {i} is the index."),
    Field("concurrency", "concurrency", _count(1, 1_000_000), "N", "Requests in flight per worker."),
    Field(
        "workers", "workers", _count(1, 10_000), "N",
        "Number of workers; by default half the processors.",
    ),
    Field(
        "engine", "engine", _engine, "ENGINE",
        "HTTP engine: aiohttp, or httptools for throughput.",
    ),
    Field(
        "timeout", "timeout_s", _duration(0.001, "1ms"), "DURATION",
        "Longest time for one request, including connecting.",
    ),
    Field(
        "grace", "grace_s", _duration(0, "0s"), "DURATION",
        "Time that requests in flight have to finish when a run is stopped; by default the timeout plus 1 s.",
    ),
    Field(
        "expect-status", "expect_status", parse_expect_status, "STATUS",
        "Statuses that count as ok: 200, 2xx or 200,404.",
        repeatable=True,
    ),
    Field(
        "range-size", "range_size", _count(1, 10**9), "N",
        "Requests per lease; by default it adapts to about 10 s of work.",
    ),
    Field(
        "servers", "servers", _count(1, 1_000), "N",
        "Number of delay server processes; by default half the processors.",
        own_servers_only=True,
    ),
    Field(
        "delay", "delay", parse_delay, "DELAY",
        "Delay of each response: 20ms, 0..3s, 5ms..80ms, exp:50ms, lognormal:40ms,0.5; by default the "
        "--delay that the delay servers were started with, or none.",
        own_servers_only=True,
    ),
    Field(
        "seed", "seed", _count(0, 2**63 - 1), "N",
        "Seed of the delays: the same seed gives the same delays; by default the --seed that the delay "
        "servers were started with, or 0.",
        own_servers_only=True,
    ),
    Field("name", "name", _name, "TEXT", "Name of the run."),
    Field(
        "cacert", "cacert", _path, "FILE",
        "PEM file of the certificates to trust instead of the system's; a path on the workers' machine.",
    ),
    Field(
        "cert", "cert", _path, "FILE",
        "PEM file of the client certificate, with its key in the same file or in --key; "
        "a path on the workers' machine.",
    ),
    Field(
        "key", "key", _path, "FILE",
        "PEM file of the private key of --cert; a path on the workers' machine.",
    ),
    Field("insecure", "insecure", _switch, "", "Accept any certificate from the target.", is_switch=True),
    Field(
        "proxy", "proxy", parse_proxy, "URL", "HTTP proxy to send the requests through (aiohttp only).",
        aiohttp_only=True,
    ),
    Field(
        "max-redirects", "max_redirects", _count(0, 100), "N",
        "Redirects to follow within one request; its latency covers all of them (aiohttp only).",
        aiohttp_only=True,
    ),
    Field(
        "cookies", "cookies", _switch, "",
        "Send back the cookies that responses set; each worker has one cookie jar (aiohttp only).",
        is_switch=True, aiohttp_only=True,
    ),
)  # fmt: skip
"""Every key of a spec, in the order in which the help lists them."""

FIELD_BY_KEY: Mapping[str, Field] = {field.key: field for field in FIELDS}
