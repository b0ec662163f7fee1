"""The spec: the immutable description of a run. `oku_core.spec.fields` defines what users may write."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction

import msgspec

from oku_core.errors import format_value
from oku_core.json_reader import JsonDecoder
from oku_core.schedule.stage import Arrivals, share_of
from oku_core.spec.data_file import DataFile
from oku_core.spec.target import Expectation, Target
from oku_core.spec.values.check import ExpectedStatus, JsonValue, SizeBound
from oku_core.spec.values.delay import Delay, parse_delay
from oku_core.spec.values.file_reference import CodeFile
from oku_core.spec.values.load_values import Late, StageText
from oku_core.spec.values.quantity import Rate, find_exact_seconds
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.threshold import Threshold
from oku_core.spec.values.url import Url, is_absolute


class Engine(StrEnum):
    """The engine that sends the requests of a worker."""

    AIOHTTP = "aiohttp"
    """The one with all features of HTTP/1.1: proxies, redirects and cookies."""
    HTTPTOOLS = "httptools"
    """The fast one: HTTP/1.1 with keep-alive, plain or over TLS, and nothing else."""
    NGHTTP2 = "nghttp2"
    """HTTP/2, over TLS or in clear text with prior knowledge."""
    PYTHON = "python"
    """Runs the coroutine of a scenario, in a process of its own."""
    LOCUST = "locust"
    """Runs the users of a locustfile, in a process of their own."""


AUTO_ENGINE = "auto"
"""What a user writes to have the engine chosen, as is done without an engine."""
HTTP1_ENGINES = (Engine.AIOHTTP, Engine.HTTPTOOLS)
"""The engines that speak HTTP/1.1."""
HTTP_ENGINES = (*HTTP1_ENGINES, Engine.NGHTTP2)
"""The engines for which an index is a request."""
USER_CODE_ENGINES = frozenset(Engine) - frozenset(HTTP_ENGINES)
"""The engines for which an index is an iteration of user code."""


class Hook(StrEnum):
    """A function of a scenario that is called once for a run."""

    SETUP = "setup"
    """Before the first iteration."""
    TEARDOWN = "teardown"
    """After the last one."""


SCENARIO = "scenario"
"""The coroutine function that each iteration calls."""
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    SCENARIO: ("index", "http", "row", "setup_data"),
    Hook.SETUP: ("http",),
    Hook.TEARDOWN: ("http", "setup_data"),
}
"""By function, the arguments that it may have; it gets those that it names."""

LIBRARIES = frozenset({"oku", "locust"})
"""The packages that user code is written for: an import of these names never finds a file of user code."""

_UNTIL_SWEPT_S = 1.0
"""Longest time from a request's timeout until its engine notices; engines check a few times a second."""


URL_REQUESTS = 1_000
"""How many requests go to a target that is not Oku's own by default."""
LONGEST_RUN = "30d"
"""The longest time that a run may take by its spec."""
MOST_CONCURRENCY = 10_000_000
"""The most requests that a run may have in flight."""
OPEN_END = 10**15
"""The number of requests of a run that ends after a time; no run can send as many."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The description of a run; `FIELDS` explains each attribute.

    The defaults suit a run against Oku's own delay servers. `parse_spec` knows the defaults that depend on
    other keys.

    Attributes:
        requests: how many there are; in a run with a rate as many as its rate makes, in one that ends after a
            time `OPEN_END`, unless it also ends after a number.
        engine: None until the coordinator has chosen one, with `oku_core.spec.engine_choice`.
    """

    requests: int = 100_000
    rate: Rate | None = None
    duration_s: float | None = None
    stages: tuple[StageText, ...] = ()
    arrivals: Arrivals = Arrivals.EVEN
    late: Late = Late("1s")
    warm_up_s: float | None = None
    max_rate: Rate | None = None
    urls: tuple[Url, ...] = ()
    base_url: Url | None = None
    targets: tuple[Target, ...] = ()
    data: DataFile | None = None
    scenario: CodeFile | None = None
    include: tuple[CodeFile, ...] = ()
    hooks: tuple[Hook, ...] = ()
    user_classes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    iteration_timeout_s: float | None = None
    method: str = "GET"
    headers: tuple[Header, ...] = ()
    body: str | None = None
    concurrency: int = 100
    workers: int | None = None
    start_within_s: float | None = None
    give_up_after_s: float | None = None
    engine: Engine | None = None
    http2: bool = False
    streams: int = 10
    connections: int | None = None
    timeout_s: float = 10.0
    grace_s: float | None = None
    stop_when_down_s: float | None = None
    expect_status: tuple[ExpectedStatus, ...] = (ExpectedStatus("2xx"),)
    expect_body: tuple[str, ...] = ()
    expect_match: tuple[str, ...] = ()
    expect_json: tuple[JsonValue, ...] = ()
    expect_header: tuple[Header, ...] = ()
    expect_size: tuple[SizeBound, ...] = ()
    expect_within_s: float | None = None
    range_size: int | None = None
    servers: int | None = None
    delay: Delay | None = None
    seed: int | None = None
    name: str = ""
    thresholds: tuple[Threshold, ...] = ()
    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    proxy: Url | None = None
    max_redirects: int = 0
    cookies: bool = False
    keepalive: bool = True

    @property
    def chosen_engine(self) -> Engine:
        """The engine of a spec that belongs to a run."""
        assert self.engine is not None, "the coordinator chooses the engine of each run"
        return self.engine

    @property
    def runs_user_code(self) -> bool:
        """Whether an index is an iteration of user code, and not a request."""
        return self.engine in USER_CODE_ENGINES

    @property
    def counted(self) -> str:
        """What its indices are: `requests`, or `iterations` of user code."""
        return "iterations" if self.runs_user_code else "requests"

    @property
    def is_open(self) -> bool:
        """Whether requests are sent at a rate, however fast they are answered."""
        return self.rate is not None or any(stage.is_rate for stage in self.stages)

    @property
    def is_timed(self) -> bool:
        """Whether requests are sent as they are answered, until a time has passed."""
        return not self.is_open and (self.duration_s is not None or bool(self.stages))

    @property
    def has_clock(self) -> bool:
        """Whether it matters for how long the run has been active: for due times, its end or its warm-up."""
        return self.is_open or self.is_timed or self.warm_up_s is not None

    @property
    def length_s(self) -> Fraction | None:
        """How many seconds the run lasts without pauses; None if only its number of requests ends it."""
        if self.stages:
            return sum((stage.duration_s for stage in self.stages), Fraction(0))
        if self.duration_s is not None:
            return find_exact_seconds(self.duration_s)
        return None if self.rate is None else self.requests / self.rate.per_second

    def find_window(self, workers: int) -> int:
        """The most requests that one of `workers` workers may have in flight."""
        return self.share_out(self.concurrency, 0, workers)

    def share_out(self, total: int, rank: int, of: int) -> int:
        """How many of `total` requests in flight one of the workers may have.

        A limited number of connections is shared out first, and the requests over the connections.
        """
        if self.connections is None:
            return share_of(total, rank, of)
        each, left = divmod(total, self.connections)
        return each * share_of(self.connections, rank, of) + share_of(left, rank, of)

    @property
    def most_workers(self) -> int:
        """How many workers can have a share of the run: a request in flight, and a connection."""
        return self.concurrency if self.connections is None else min(self.concurrency, self.connections)

    @property
    def drain_s(self) -> float:
        """How many seconds requests in flight may take to finish when the run is stopped.

        By default they have until their timeout.
        """
        return self.timeout_s + _UNTIL_SWEPT_S if self.grace_s is None else self.grace_s

    @property
    def brings_servers(self) -> bool:
        """Whether the target is Oku's own delay servers."""
        return not self.runs_user_code and not self.list_places()

    @property
    def columns(self) -> tuple[str, ...]:
        """What placeholders may stand for, beside the index."""
        if self.data is None:
            return ()
        return self.data.columns if self.runs_user_code else self.data.placeholders

    def list_places(self) -> list[Url]:
        """The URLs that requests go to; none if they go to Oku's own delay servers."""
        bases = [self.base_url] if self.base_url is not None else []
        whole = [Url(target.url) for target in self.targets if is_absolute(target.url)]
        return [*self.urls, *bases, *whole]

    @property
    def expectation(self) -> Expectation:
        """The checks of responses, unless their target has its own."""
        checks = Expectation.__struct_fields__
        return Expectation(**{check: getattr(self, f"expect_{check}") for check in checks})


_PARSER_BY_TYPE: dict[type, Callable[[str], object]] = {
    CodeFile: CodeFile, Delay: parse_delay, ExpectedStatus: ExpectedStatus, Header: Header,
    JsonValue: JsonValue, Late: Late, Rate: Rate, SizeBound: SizeBound,
    StageText: StageText, Threshold: Threshold,
    Url: Url,
}  # fmt: skip


def encode_part(part: object) -> str:
    """Encode a part of a spec for `msgspec`: types of ours are written as the text that the user wrote."""
    if type(part) not in _PARSER_BY_TYPE:
        # What msgspec expects of such a hook for a type that it does not know.
        raise NotImplementedError(f"{type(part)} is not a part of a spec")
    return str(part)


def decode_part(kind: type, written: object) -> object:
    """Reverse `encode_part`. Each part is parsed here once, so that nothing later needs to parse it again."""
    if not isinstance(written, str):
        raise ValueError(f"{format_value(written)} is not text")  # noqa: TRY004  # msgspec expects a ValueError
    return _PARSER_BY_TYPE[kind](written)


def encode_spec(spec: Spec) -> bytes:
    """Write a spec as JSON, with every part as the user wrote it."""
    return msgspec.json.encode(spec, enc_hook=encode_part)


_DECODER: JsonDecoder[Spec] = JsonDecoder(Spec, decode_part)


def decode_spec(content: bytes | str) -> Spec:
    """Read a spec that `encode_spec` wrote."""
    return _DECODER.decode(content)
