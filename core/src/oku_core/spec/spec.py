"""The spec: the immutable description of a run. What users may write is in `oku_core.spec.fields`."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from oku_core.errors import format_value
from oku_core.spec.delay import Delay, parse_delay
from oku_core.spec.expected_status import ExpectedStatus
from oku_core.spec.header import Header
from oku_core.spec.url import Url


class Engine(StrEnum):
    """What sends the requests of a worker."""

    AIOHTTP = "aiohttp"
    """The default: all that HTTP/1.1 clients do."""
    HTTPTOOLS = "httptools"
    """For throughput: plain and TLS HTTP/1.1 with keep-alive."""


_UNTIL_SWEPT_S = 1.0
"""Engines look a few times a second for requests that are over their timeout."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is. See `FIELDS` for what each attribute means."""

    requests: int = 100_000
    urls: tuple[Url, ...] = ()
    method: str = "GET"
    headers: tuple[Header, ...] = ()
    body: str | None = None
    concurrency: int = 100
    workers: int | None = None
    engine: Engine = Engine.AIOHTTP
    timeout_s: float = 10.0
    grace_s: float | None = None
    expect_status: tuple[ExpectedStatus, ...] = (ExpectedStatus("200"),)
    range_size: int | None = None
    servers: int | None = None
    delay: Delay | None = None
    seed: int | None = None
    name: str = ""
    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    proxy: Url | None = None
    max_redirects: int = 0
    cookies: bool = False

    @property
    def drain_s(self) -> float:
        """How long requests in flight may go on when the run is stopped; by default until their timeout."""
        return self.timeout_s + _UNTIL_SWEPT_S if self.grace_s is None else self.grace_s

    @property
    def brings_servers(self) -> bool:
        """Whether the target is Oku's own delay servers."""
        return not self.urls


_PARSER_BY_TYPE: dict[type, Callable[[str], object]] = {
    Delay: parse_delay, ExpectedStatus: ExpectedStatus, Header: Header, Url: Url,
}  # fmt: skip


def encode_part(part: object) -> str:
    """What `msgspec` writes for a part of a spec that has a type of ours: the text that it was read from."""
    if type(part) not in _PARSER_BY_TYPE:
        raise NotImplementedError(f"{type(part)} is not a part of a spec")
    return str(part)


def decode_part(kind: type, written: object) -> object:
    """The reverse of `encode_part`: each part is parsed here, and nowhere after."""
    if not isinstance(written, str):
        raise ValueError(f"{format_value(written)} is not text")  # noqa: TRY004  # msgspec expects this one
    return _PARSER_BY_TYPE[kind](written)


def encode_spec(spec: Spec) -> bytes:
    """A spec as JSON, with every part as it was written."""
    return msgspec.json.encode(spec, enc_hook=encode_part)


def decode_spec(content: bytes | str) -> Spec:
    """Read what `encode_spec` wrote."""
    return msgspec.json.decode(content, type=Spec, dec_hook=decode_part)
