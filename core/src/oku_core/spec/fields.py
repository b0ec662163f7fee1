"""The table of all keys of a spec: what each one means, and how its value is parsed.

Flags, files and the API all read specs by this table, and the command line builds its options from it, so a
key has the same name and the same meaning everywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from oku_core.errors import format_value
from oku_core.schedule.stage import Arrivals
from oku_core.spec.data_file import parse_data_file
from oku_core.spec.spec import (
    AUTO_ENGINE,
    HTTP1_ENGINES,
    HTTP_ENGINES,
    LONGEST_RUN,
    MOST_CONCURRENCY,
    OPEN_END,
    URL_REQUESTS,
    USER_CODE_ENGINES,
    Engine,
    Hook,
    Spec,
)
from oku_core.spec.target import build_target_mapping, parse_targets, parse_within_s
from oku_core.spec.values.check import (
    parse_contained,
    parse_expect_status,
    parse_expected_headers,
    parse_json_values,
    parse_sizes,
)
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.file_reference import find_file_reference, parse_code_file, parse_code_files
from oku_core.spec.values.load_values import parse_late, parse_stages, parse_stop_when_down
from oku_core.spec.values.pattern import parse_patterns
from oku_core.spec.values.quantity import parse_count, parse_duration_s, parse_rate
from oku_core.spec.values.request_content import parse_body, parse_headers
from oku_core.spec.values.scalar import parse_method, parse_name, parse_names, parse_text
from oku_core.spec.values.threshold import parse_thresholds
from oku_core.spec.values.url import parse_base_url, parse_proxy, parse_urls

_Number = TypeVar("_Number", int, float)


class FieldGroup(StrEnum):
    """The subjects of keys; help and documents list the keys under these headings."""

    TARGET = "Target"
    USER_CODE = "User code"
    LOAD = "Load"
    CONNECTION = "Connection"
    DELAY_SERVERS = "Delay servers"
    THRESHOLDS = "Thresholds"
    OUTPUT = "Output"


@dataclass(frozen=True)
class Field:
    """One key of a spec.

    Attributes:
        key: the name that users write.
        attribute: the attribute of `Spec` that the key sets.
        group: the heading that it stands under.
        parse: turns what the user wrote into the value of the attribute, or raises `ValueError`.
        metavar: the placeholder for a value in the help of the command line.
        help: what the key means, in one sentence.
        flag: its long flag without dashes, where that is not the key.
        short: its flags of one letter, as in curl, hey and oha.
        other_flags: further long flags, under which people of other tools know it.
        default: what the key means when it is left out, where that depends on other keys.
        repeatable: whether the key takes several values.
        own_servers_only: whether the key applies only to Oku's own delay servers.
        rate_only: whether the key applies only to runs with a rate.
        is_switch: whether the key is a flag without a value; the flag means the opposite of the default.
        refusals: by engine that does not support the key, its refusal; `{engine}` stands for its name.
        need: names the key in the reason for an engine.
        file_only: whether the key stands in files alone, because its value has keys of its own.
        alias_of: the key whose value it gives under another name; empty if it is no other name.
        write: turns one item of the value back into what a file has; text unless given.
    """

    key: str
    attribute: str
    group: FieldGroup
    parse: Callable[[Any], Any]
    metavar: str
    help: str
    flag: str = ""
    short: tuple[str, ...] = ()
    other_flags: tuple[str, ...] = ()
    default: str = ""
    repeatable: bool = False
    own_servers_only: bool = False
    rate_only: bool = False
    is_switch: bool = False
    refusals: Mapping[Engine, str] = field(default_factory=dict)
    need: str = ""
    file_only: bool = False
    alias_of: str = ""
    write: Callable[[Any], Any] = str

    @property
    def long_flag(self) -> str:
        """Its long flag, without dashes."""
        return self.flag or self.key

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The engines that support the key."""
        return tuple(engine for engine in Engine if engine not in self.refusals)


def _bounded(parse: Callable[[object], _Number], low: str, high: str) -> Callable[[object], _Number]:
    def parse_bounded(value: object) -> _Number:
        number = parse(value)
        if number < parse(low):
            raise ValueError(f"{format_value(value)} is not at least {low}")
        if number > parse(high):
            raise ValueError(f"{format_value(value)} is not at most {high}")
        return number

    return parse_bounded


def _count(low: int, high: int) -> Callable[[object], int]:
    return _bounded(parse_count, str(low), f"{high:_}")


def _duration(low: str, high: str = "1h") -> Callable[[object], float]:
    return _bounded(parse_duration_s, low, high)


def _one_of(choices: type[StrEnum]) -> Callable[[object], StrEnum]:
    def parse(value: object) -> StrEnum:
        try:
            return choices(parse_text(value))
        except ValueError:
            raise ValueError(f"{format_value(value)} is not one of {', '.join(choices)}") from None

    return parse


def _engine(value: object) -> Engine | None:
    try:
        return None if (name := parse_text(value)) == AUTO_ENGINE else Engine(name)
    except ValueError:
        raise ValueError(f"{format_value(value)} is not one of {', '.join((AUTO_ENGINE, *Engine))}") from None


def _path(value: object) -> str:
    path = parse_text(value)
    if not path or not path.isprintable():
        raise ValueError(f"{format_value(path)} is not the path of a file")
    find_file_reference(path)  # raises `ValueError` for a broken reference
    return path


def _hooks(value: object) -> tuple[Hook, ...]:
    if not isinstance(value, (list, tuple)) or not all(item in list(Hook) for item in value):
        raise ValueError(f"{format_value(value)} is not a list of {', '.join(Hook)}")
    return tuple(hook for hook in Hook if hook in value)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{format_value(value)} is not true or false")  # noqa: TRY004  # the input is wrong, not the call
    return value


_Refusals = Mapping[Engine, str]
_REQUESTS: _Refusals = dict.fromkeys(
    USER_CODE_ENGINES, "cannot be combined with user code, which makes its own requests"
)
_AIOHTTP: _Refusals = dict.fromkeys(
    (Engine.HTTPTOOLS, Engine.NGHTTP2), f"the engine {{engine}} does not support this, use {Engine.AIOHTTP}"
)
_HTTP2: _Refusals = dict.fromkeys(HTTP1_ENGINES, "applies only to HTTP/2, use http2") | dict.fromkeys(
    USER_CODE_ENGINES, "cannot be combined with user code, which speaks HTTP/1.1"
)
_USER_CODE: _Refusals = dict.fromkeys(HTTP_ENGINES, "applies only to user code: a scenario or a locustfile")
_LOCUST: _Refusals = {**_USER_CODE, Engine.PYTHON: "applies only to locustfiles"}

NO_HTTP2_SERVERS = "Oku's own delay servers speak HTTP/1.1; give a URL, or use another engine"
_OWN_SERVERS: _Refusals = {**_REQUESTS, Engine.NGHTTP2: NO_HTTP2_SERVERS}

FIELDS: tuple[Field, ...] = (
    Field(
        "url", "urls", FieldGroup.TARGET, parse_urls, "URL",
        "Target; {i} is the index of the request. Several URLs are used in turn, index by index. "
        "Without a URL, Oku uses its own delay servers.",
        repeatable=True,
        refusals={
            engine: f"{reason}; base-url, on the command line --host, is what comes before their URLs"
            for engine, reason in _REQUESTS.items()
        },
    ),
    Field(
        "method", "method", FieldGroup.TARGET, parse_method, "METHOD", "HTTP method.",
        short=("-m", "-X"), default="GET, or POST with a body", refusals=_REQUESTS,
    ),
    Field(
        "header", "headers", FieldGroup.TARGET, parse_headers, "'NAME: VALUE'",
        "Header to send; {i} is the index.",
        short=("-H",), repeatable=True,
    ),
    Field(
        "body", "body", FieldGroup.TARGET, parse_body, "TEXT|@FILE",
        "Body to send; {i} is the index. JSON, and a form such as a=1&b=2, are sent as such unless a header "
        "says otherwise.",
        short=("-d",), refusals=_REQUESTS,
    ),
    Field(
        "base-url", "base_url", FieldGroup.TARGET, parse_base_url, "URL",
        "What comes before URLs that begin with /, of targets or in user code. Without it, targets ask Oku's "
        "own delay servers.",
        other_flags=("--host",),
    ),
    Field(
        "targets", "targets", FieldGroup.TARGET, parse_targets, "",
        "Requests of several kinds: a list of mappings with name, weight, method, url, header, body or json, "
        "and expect.",
        repeatable=True, file_only=True, write=build_target_mapping, refusals=_REQUESTS,
    ),
    Field(
        "data", "data", FieldGroup.TARGET, parse_data_file, "FILE",
        "CSV or JSON lines with a row for each request: wherever {i} may stand, {column} is a value of the "
        "row of the request. FILE:repeat starts over after the last row.",
    ),
    Field(
        "expect-status", "expect_status", FieldGroup.TARGET, parse_expect_status, "STATUS",
        "Statuses that count as ok: 200, 2xx or 200,404. A redirect that is not followed has status 3xx.",
        repeatable=True, refusals=_REQUESTS,
    ),
    Field(
        "expect-body", "expect_body", FieldGroup.TARGET, parse_contained, "TEXT",
        "Text that the body of every answer must contain.",
        repeatable=True, refusals=_REQUESTS,
    ),
    Field(
        "expect-match", "expect_match", FieldGroup.TARGET, parse_patterns, "REGEX",
        "Regular expression of RE2 that the body of every answer must match anywhere.",
        repeatable=True, refusals=_REQUESTS,
    ),
    Field(
        "expect-json", "expect_json", FieldGroup.TARGET, parse_json_values, "POINTER=VALUE",
        "Value that every answer must have as JSON at a JSON pointer: /user/id=17.",
        repeatable=True, refusals=_REQUESTS,
    ),
    Field(
        "expect-header", "expect_header", FieldGroup.TARGET, parse_expected_headers, "'NAME: VALUE'",
        "Header that every answer must have; 'NAME:' takes any value.",
        repeatable=True, refusals=_REQUESTS,
    ),
    Field(
        "expect-size", "expect_size", FieldGroup.TARGET, parse_sizes, "SIZE",
        "Bound of the size of every body: 1kB, '> 0', '<= 10kB'.",
        repeatable=True, refusals=_REQUESTS,
    ),
    Field(
        "expect-within", "expect_within_s", FieldGroup.TARGET, parse_within_s, "DURATION",
        "Longest time that an answer may take to count as ok; --timeout is when to give it up.",
        refusals=_REQUESTS,
    ),
    Field(
        "scenario", "scenario", FieldGroup.USER_CODE, parse_code_file, "FILE",
        "Python file whose async def scenario, or Locust users, each index runs once: an iteration. "
        "The modules beside it that it imports come along.",
        refusals=dict.fromkeys(HTTP_ENGINES, "the engine {engine} runs no user code, use python or locust"),
    ),
    Field(
        "include", "include", FieldGroup.USER_CODE, parse_code_files, "FILE|FOLDER",
        "File or folder beside the scenario that it reads, or imports by a name which only it knows.",
        repeatable=True, refusals=_USER_CODE,
    ),
    Field(
        "hooks", "hooks", FieldGroup.USER_CODE, _hooks, "",
        "Which of setup and teardown the scenario has; the command finds them.",
        repeatable=True, file_only=True,
        refusals={**_USER_CODE, Engine.LOCUST: "a locustfile has events instead: test_start and test_stop"},
    ),
    Field(
        "iterations", "requests", FieldGroup.USER_CODE, _count(1, OPEN_END), "N",
        "Number of iterations: another name of --requests.",
        default=f"{URL_REQUESTS}; the rows of --data; none with --duration or --stage", alias_of="requests",
        refusals=_USER_CODE,
    ),
    Field(
        "users", "concurrency", FieldGroup.USER_CODE, _count(1, MOST_CONCURRENCY), "N",
        "Users, shared out over the workers, each with one iteration at a time: another name of "
        "--concurrency.",
        default=f"{Spec().concurrency}; with a rate, what it sends in 2s",
        alias_of="concurrency",
        refusals=_USER_CODE,
    ),
    Field(
        "iteration-timeout", "iteration_timeout_s", FieldGroup.USER_CODE, _duration("1ms"), "DURATION",
        "Longest time for one iteration.",
        default="none", refusals=_USER_CODE,
    ),
    Field(
        "user-classes", "user_classes", FieldGroup.USER_CODE, parse_names, "NAME",
        "Locust: user class to run, of several in the file.",
        flag="user-class", repeatable=True, default="all", refusals=_LOCUST,
    ),
    Field(
        "tags", "tags", FieldGroup.USER_CODE, parse_names, "TAG", "Locust: run only tasks with this tag.",
        flag="tag", repeatable=True, refusals=_LOCUST,
    ),
    Field(
        "exclude-tags", "exclude_tags", FieldGroup.USER_CODE, parse_names, "TAG",
        "Locust: leave out tasks with this tag.",
        flag="exclude-tag", repeatable=True, refusals=_LOCUST,
    ),
    Field(
        "requests", "requests", FieldGroup.LOAD, _count(1, OPEN_END), "N",
        "Number of requests: 50000, 1_000_000, 1e6, 1M.",
        short=("-n",),
        default=f"{URL_REQUESTS} with a URL, {Spec().requests} without; the rows of --data; "
        "none with --duration or --stage",
    ),
    Field(
        "duration", "duration_s", FieldGroup.LOAD, _duration("1ms", LONGEST_RUN), "DURATION",
        "Time after which no more requests are sent: 30s, 10m, 2h. "
        "With --requests as well, whichever comes first ends the run.",
        short=("-z",),
    ),
    Field(
        "rate", "rate", FieldGroup.LOAD, parse_rate, "RATE",
        "Rate of requests over all workers, however slow the answers: 5000/s, 300/m, 1.5k/s. "
        "Needs --duration or --requests.",
        short=("-q",),
    ),
    Field(
        "stages", "stages", FieldGroup.LOAD, parse_stages, "STAGE",
        "Stage of the run, in the order given: 1m:0..5000/s is a ramp, 10m:5000/s goes from the last rate to "
        "this one, 1m:0..200 is a ramp of requests in flight, over all workers. soak=10m:5000/s has a name.",
        flag="stage", repeatable=True,
    ),
    Field(
        "arrivals", "arrivals", FieldGroup.LOAD, _one_of(Arrivals), "ARRIVALS",
        "With a rate, how requests are spaced: even, or poisson, at random, as independent users would come.",
        rate_only=True,
    ),
    Field(
        "late", "late", FieldGroup.LOAD, parse_late, "DURATION|send",
        "With a rate, how late a request may be sent; after that it counts as not sent. "
        "With send, every request is sent, however late.",
        rate_only=True,
    ),
    Field(
        "max-rate", "max_rate", FieldGroup.LOAD, parse_rate, "RATE",
        "Without --rate, the highest rate of requests over all workers; it is never exceeded.",
    ),
    Field(
        "warm-up", "warm_up_s", FieldGroup.LOAD, _duration("1ms", LONGEST_RUN), "DURATION",
        "First part of the run: a phase of its own, which latencies and rates leave out.",
    ),
    Field(
        "concurrency", "concurrency", FieldGroup.LOAD, _count(1, MOST_CONCURRENCY), "N",
        "Requests in flight, shared out over the workers; with a rate, the most there may be.",
        short=("-c",),
        default=f"{Spec().concurrency}; with a rate, what it sends in 2s; with connections, their streams",
    ),
    Field(
        "timeout", "timeout_s", FieldGroup.LOAD, _duration("1ms"), "DURATION",
        "Longest time for one request, including connecting.",
        short=("-t",),
    ),
    Field(
        "workers", "workers", FieldGroup.LOAD, _count(1, 10_000), "N", "Number of workers.",
        short=("-w",), default="1, without url 2; at a coordinator, all that are connected",
    ),
    Field(
        "start-within", "start_within_s", FieldGroup.LOAD, _duration("0s"), "DURATION",
        "How long to wait for all workers; then the run starts with those that are there.",
        default="10s, in a cluster 1m",
    ),
    Field(
        "give-up-after", "give_up_after_s", FieldGroup.LOAD, _duration("1s", LONGEST_RUN), "DURATION",
        "Time without any worker after which the run is cancelled, queued or in the middle: 30s, 5m.",
    ),
    Field(
        "engine", "engine", FieldGroup.LOAD, _engine, "ENGINE",
        "HTTP engine: auto is the fastest that supports the spec, of httptools, aiohttp and, for HTTP/2, "
        "nghttp2. User code has python or locust, by what it is.",
        default=AUTO_ENGINE,
    ),
    Field(
        "grace", "grace_s", FieldGroup.LOAD, _duration("0s"), "DURATION",
        "Time that requests in flight have to finish when a run is stopped.",
        default="the timeout plus 1s",
    ),
    Field(
        "stop-when-down", "stop_when_down_s", FieldGroup.LOAD, parse_stop_when_down, "DURATION|never",
        "Time without a request that was ok after which the run ends: 30s, 5m; never keeps it going.",
        default="30s, or the timeout plus 5s if that is longer, while nothing was ever ok; else never",
    ),
    Field(
        "range-size", "range_size", FieldGroup.LOAD, _count(1, 10**9), "N", "Requests per lease.",
        default="what takes about 10s",
    ),
    Field(
        "seed", "seed", FieldGroup.LOAD, _count(0, 2**63 - 1), "N",
        "Seed of all that is random: the same seed gives the same arrivals and the same delays.",
        default="0, for delays the --seed of the delay servers",
    ),
    Field(
        "insecure", "insecure", FieldGroup.CONNECTION, _switch, "", "Accept any certificate from the target.",
        short=("-k",), is_switch=True,
    ),
    Field(
        "proxy", "proxy", FieldGroup.CONNECTION, parse_proxy, "URL",
        "HTTP proxy to send the requests through.",
        short=("-x",), refusals=_AIOHTTP, need="a proxy",
    ),
    Field(
        "max-redirects", "max_redirects", FieldGroup.CONNECTION, _count(0, 100), "N",
        "Redirects to follow within one request; its latency covers all of them.",
        refusals={**_AIOHTTP, **_REQUESTS}, need="redirects",
    ),
    Field(
        "cookies", "cookies", FieldGroup.CONNECTION, _switch, "",
        "Send back the cookies that responses set; each worker has one cookie jar.",
        is_switch=True, refusals={**_AIOHTTP, **_REQUESTS}, need="cookies",
    ),
    Field(
        "http2", "http2", FieldGroup.CONNECTION, _switch, "",
        "Speak HTTP/2, over TLS or in clear text with prior knowledge: the engine nghttp2.",
        other_flags=("--http2-prior-knowledge",), is_switch=True, need="HTTP/2",
        refusals={
            **_HTTP2,
            **dict.fromkeys(HTTP1_ENGINES, f"the engine {{engine}} speaks HTTP/1.1, use {Engine.NGHTTP2}"),
        },
    ),
    Field(
        "streams", "streams", FieldGroup.CONNECTION, _count(1, 10_000), "N",
        "Requests in flight on each connection, if the server allows as many (HTTP/2 only).",
        refusals=_HTTP2,
    ),
    Field(
        "connections", "connections", FieldGroup.CONNECTION, _count(1, 100_000), "N",
        "Connections to each host, shared out over the workers (HTTP/2 only).",
        default="as many as the concurrency needs", refusals=_HTTP2,
    ),
    Field(
        "keepalive", "keepalive", FieldGroup.CONNECTION, _switch, "",
        "Open a new connection for each request.",
        flag="no-keepalive", is_switch=True,
        refusals={
            Engine.NGHTTP2: "connections of HTTP/2 are kept; leave it out, or use HTTP/1.1",
            Engine.LOCUST: "the clients of a locustfile keep connections; let it send Connection: close",
        },
    ),
    Field(
        "cacert", "cacert", FieldGroup.CONNECTION, _path, "FILE|@FILE",
        "PEM file of the certificates to trust instead of the system's: a path on the workers' machine, or a "
        "file of this one that workers get.",
    ),
    Field(
        "cert", "cert", FieldGroup.CONNECTION, _path, "FILE|@FILE",
        "PEM file of the client certificate, with its key in the same file or in --key; "
        "a path on the workers' machine, or a file of this one that workers get.",
    ),
    Field(
        "key", "key", FieldGroup.CONNECTION, _path, "FILE|@FILE",
        "PEM file of the private key of --cert; a path on the workers' machine, or a file of this one that "
        "workers get.",
    ),
    Field(
        "servers", "servers", FieldGroup.DELAY_SERVERS, _count(1, 1_000), "N",
        "Number of delay server processes.",
        default="half the processors", own_servers_only=True, refusals=_OWN_SERVERS,
    ),
    Field(
        "delay", "delay", FieldGroup.DELAY_SERVERS, parse_delay, "DELAY",
        "Delay of each response: 20ms, 0..3s, 5ms..80ms, exp:50ms, lognormal:40ms,0.5.",
        default="lognormal:20ms,0.5", own_servers_only=True, refusals=_OWN_SERVERS,
    ),
    Field(
        "thresholds", "thresholds", FieldGroup.THRESHOLDS, parse_thresholds, "THRESHOLD",
        "What must hold of the run: 'p99 < 300ms', 'ok >= 99.9%', 'rate >= 0.99 of plan over 10s: abort'. "
        "With : abort, the run ends once the threshold is lost.",
        flag="threshold", repeatable=True,
    ),
    Field("name", "name", FieldGroup.OUTPUT, parse_name, "TEXT", "Name of the run."),
)  # fmt: skip
"""Every key of a spec, in the order in which the help lists them."""

FIELD_BY_KEY: Mapping[str, Field] = {field.key: field for field in FIELDS}


def describe_default(field: Field) -> str:
    """What a key means when it is left out, as one would write it; empty if that is nothing."""
    value = getattr(Spec(), field.attribute)
    if field.default or field.is_switch or value is None or value in ("", ()):
        return field.default
    if isinstance(value, float):
        return f"{value:g}s"
    return ",".join(value) if isinstance(value, tuple) else str(value)
