"""The spec: the immutable description of a run. What users may write is in `oku_core.spec.fields`."""

from enum import StrEnum

import msgspec


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
    delay: str | None = None
    seed: int | None = None
    name: str = ""
    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    proxy: str | None = None
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


def build_expected_statuses(spec: Spec) -> frozenset[int]:
    """The status codes that count as `ok`; `2xx` stands for a hundred of them."""
    codes: set[int] = set()
    for item in spec.expect_status:
        if item.endswith("xx"):
            codes.update(range(int(item[0]) * 100, int(item[0]) * 100 + 100))
        else:
            codes.add(int(item))
    return frozenset(codes)
