"""Builds the requests of a spec: one template for each kind, and which of them an index asks.

The kind depends on the spec and the index alone. Of every block of as many indices as all weights sum to,
each target gets exactly its weight; the order within a block is drawn from the seed (decision 39) and repeats
after some thousands of indices. So a binary search in one period counts the requests of any number of
indices.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from math import gcd, lcm
from typing import NamedTuple

import msgspec

from oku_core.spec.spec import Spec
from oku_core.spec.target import Expectation, Target
from oku_core.spec.values.delay import DELAY_HEADER, RUN_HEADER, SEED_HEADER
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.template import INDEX_PLACEHOLDER
from oku_core.spec.values.url import Url, join_url
from oku_core.uniform import draw_bits


class TurnCount(NamedTuple):
    """The indices that ask one target.

    Attributes:
        target: its place among the targets.
        requests: how many they are; at least 1.
        first: the rank of the lowest of them.
        last: the rank of the highest of them.
    """

    target: int
    requests: int
    first: int
    last: int


class TurnCounts:
    """Counts evenly spaced indices by target; the lowest index has rank 0.

    Args:
        turns: which target each index asks, in the order of the indices from 0, repeated for ever.
        indices: in rising order.
    """

    def __init__(self, turns: Sequence[int], indices: range) -> None:
        length = len(turns)
        self._period = length // gcd(length, indices.step)
        self._ranks: dict[int, list[int]] = {}
        """By target, the ranks within one period that ask it."""
        begin, step = indices.start, indices.step
        for rank in range(self._period):
            self._ranks.setdefault(turns[(begin + rank * step) % length], []).append(rank)

    def count(self, start: int, stop: int) -> list[TurnCount]:
        """The counts of the ranks `start <= r < stop`, for each target that any of them asks."""
        counts = []
        for target, ranks in self._ranks.items():
            before, until = self._count_before(ranks, start), self._count_before(ranks, stop)
            if before < until:
                first, last = self._find_rank(ranks, before), self._find_rank(ranks, until - 1)
                counts.append(TurnCount(target, until - before, first, last))
        return counts

    def _count_before(self, ranks: Sequence[int], rank: int) -> int:
        rounds, rest = divmod(rank, self._period)
        return rounds * len(ranks) + bisect_left(ranks, rest)

    def _find_rank(self, ranks: Sequence[int], number: int) -> int:
        """The rank of the index that asks a target as the `number`-th one, from 0."""
        rounds, place = divmod(number, len(ranks))
        return rounds * self._period + ranks[place]


_DRAWN = 16_384
"""The order repeats after at least this many indices, which a worker draws in some milliseconds."""
_MOST_TURNS = 1 << 20
"""The most turns that are kept in memory: 8 MB."""


class RequestTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request, with all that it needs.

    Attributes:
        name: the target that it belongs to; empty if the spec names none.
        url: the whole URL.
        method: the HTTP method.
        headers: all headers that the spec gives it.
        body: None if there is no body.
        is_json: whether what placeholders stand for is escaped as in a string of JSON.
        columns: what placeholders may stand for, beside the index.
        expect: the checks of responses.
    """

    name: str = ""
    url: Url
    method: str
    headers: tuple[Header, ...]
    body: str | None = None
    is_json: bool = False
    columns: tuple[str, ...] = ()
    expect: Expectation


class RequestMix:
    """The templates of a spec, and which of them each index asks.

    Args:
        spec: with the URLs of its targets, including Oku's own delay servers.

    Attributes:
        templates: one for each target and base URL, or for each URL; none if the spec has neither.
        turns: index `i` asks the template at the place `turns[i % len(turns)]`.

    Raises:
        ValueError: a target needs a base URL, and there is none.
    """

    def __init__(self, spec: Spec) -> None:
        self.templates: tuple[RequestTemplate, ...]
        self.turns: Sequence[int]
        if not spec.targets:
            self.templates = tuple(
                RequestTemplate(
                    url=url,
                    method=spec.method,
                    headers=spec.headers,
                    body=spec.body,
                    columns=spec.columns,
                    expect=spec.expectation,
                )
                for url in spec.urls
            )
            self.turns = range(len(self.templates))
            return
        bases = spec.urls or (spec.base_url,)
        self.templates = tuple(
            _build_template(spec, target, base) for target in spec.targets for base in bases
        )
        turns = find_target_turns(spec)
        # As many as both the targets and the base URLs need to begin again together, if that is not too many.
        rounds = min(lcm(len(turns), len(bases)), _MOST_TURNS) // len(turns)
        self.turns = [
            turns[turn % len(turns)] * len(bases) + turn % len(bases) for turn in range(rounds * len(turns))
        ]

    def find(self, index: int) -> RequestTemplate:
        """The template of the request with this index."""
        return self.templates[self.turns[index % len(self.turns)]]


def pick_request(spec: Spec, index: int) -> Spec:
    """A spec whose only kind of request is that which an index of a spec with URLs asks."""
    mix = RequestMix(spec)
    place = mix.turns[index % len(mix.turns)]
    if not spec.targets:
        return msgspec.structs.replace(spec, urls=(spec.urls[place],))
    target, base = divmod(place, max(1, len(spec.urls)))
    urls = spec.urls[base : base + 1]
    return msgspec.structs.replace(spec, urls=urls, targets=(spec.targets[target],), body=None)


def _build_template(spec: Spec, target: Target, base: Url | None) -> RequestTemplate:
    return RequestTemplate(
        name=target.name,
        url=join_url(base, target.url),
        method=target.method,
        headers=list_headers(spec, target),
        body=target.body,
        is_json=target.is_json,
        columns=spec.columns,
        expect=target.expect.complete(spec.expectation),
    )


def list_headers(spec: Spec, target: Target) -> tuple[Header, ...]:
    """The headers of a target: its own, and the shared ones with other names."""
    own = {header.name.lower() for header in target.headers}
    return (*(header for header in spec.headers if header.name.lower() not in own), *target.headers)


def list_target_names(spec: Spec) -> tuple[str, ...]:
    """The names that the requests of a spec are counted by; one that is empty if it names no target."""
    return tuple(target.name for target in spec.targets) or ("",)


def find_target_turns(spec: Spec) -> Sequence[int]:
    """Which target each index asks, as its place among them: index `i` asks `turns[i % len(turns)]`."""
    return _draw_turns(tuple(target.weight for target in spec.targets) or (1,), spec.seed or 0)


def count_target_requests(spec: Spec, place: int, stop: int) -> int:
    """How many of the indices from 0 to below `stop` ask the target at this place among the targets."""
    turns = find_target_turns(spec)
    divisor = gcd(*(target.weight for target in spec.targets))
    block = sum(target.weight for target in spec.targets) // divisor
    blocks, rest = divmod(stop, block)
    begin = blocks * block % len(turns)
    whole = blocks * (spec.targets[place].weight // divisor)
    return whole + turns[begin : begin + rest].count(place)


@lru_cache(maxsize=8)
def _draw_turns(weights: tuple[int, ...], seed: int) -> Sequence[int]:
    """The places of targets in some blocks in a row, each block in an order of its own (Fisher and Yates)."""
    divisor = gcd(*weights)
    block = [place for place, weight in enumerate(weights) for _ in range(weight // divisor)]
    if len(block) == 1:
        return block
    turns: list[int] = []
    drawn = 0
    while len(turns) < _DRAWN:
        for last in range(len(block) - 1, 0, -1):
            other = draw_bits(seed, drawn) % (last + 1)
            drawn += 1
            block[last], block[other] = block[other], block[last]
        turns += block
    return turns


def ask_servers(spec: Spec, count_name: str, server_urls: Sequence[str]) -> Spec:
    """The spec as workers get it: as it is, unless it brings no target.

    Then it gets the addresses of our own delay servers and the headers with the run that a request counts
    for, its delay and its seed. No other target receives the run.

    Args:
        spec: of a run.
        count_name: the name under which they count its requests.
        server_urls: where the delay servers are.
    """
    if not spec.brings_servers:
        return spec
    headers = [Header(f"{RUN_HEADER}: {count_name}")]
    if spec.delay is not None:
        headers.append(Header(f"{DELAY_HEADER}: {spec.delay}"))
    if spec.seed is not None:
        headers.append(Header(f"{SEED_HEADER}: {spec.seed}"))
    path = "" if spec.targets else f"/{INDEX_PLACEHOLDER}"
    urls = tuple(Url(f"{url.rstrip('/')}{path}") for url in server_urls)
    return msgspec.structs.replace(spec, urls=urls, headers=(*spec.headers, *headers))
