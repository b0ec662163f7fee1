from collections import Counter
from math import gcd
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import (
    RequestMix,
    TurnCount,
    TurnCounts,
    ask_servers,
    count_target_requests,
    find_target_turns,
    list_target_names,
    pick_request,
)
from oku_core.spec.spec import Spec, decode_spec, encode_spec
from oku_core.spec.target import Target
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

TURNS = st.lists(st.integers(0, 3), min_size=1, max_size=12)
RANKS = st.integers(0, 60)


@given(turns=TURNS, begin=st.integers(0, 30), step=st.integers(1, 30), ranks=st.tuples(RANKS, RANKS))
def test_it_counts_as_one_would_by_hand(
    turns: list[int], begin: int, step: int, ranks: tuple[int, int]
) -> None:
    """Whatever the turns and the distance of the indices have in common."""
    indices = range(begin, begin + 60 * step, step)
    start, stop = sorted(ranks)
    asked = [turns[index % len(turns)] for index in indices]
    by_hand = []
    for target in set(asked[start:stop]):
        mine = [rank for rank in range(start, stop) if asked[rank] == target]
        by_hand.append(TurnCount(target, len(mine), mine[0], mine[-1]))
    assert sorted(TurnCounts(turns, indices).count(start, stop)) == sorted(by_hand)


def test_it_counts_among_billions() -> None:
    """It looks at one period of the turns alone."""
    counts = TurnCounts([0, 0, 1], range(5, 5 + 3 * 10**12, 1)).count(1, 3 * 10**12 - 1)
    assert sorted(counts) == [
        TurnCount(0, 2 * 10**12 - 1, 1, 3 * 10**12 - 2),
        TurnCount(1, 10**12 - 1, 3, 3 * 10**12 - 3),
    ]


WEIGHTS = st.lists(st.integers(1, 60), min_size=1, max_size=8)
SEEDS = st.none() | st.integers(0, 2**63 - 1)
INDICES = st.integers(0, 10**15)


def build(weights: list[int], seed: int | None = None, bases: int = 1) -> Spec:
    """A spec with targets of these weights behind so many base URLs."""
    return Spec(
        urls=tuple(Url(f"http://h{number}/") for number in range(bases)),
        targets=tuple(
            Target(name=f"t{number}", weight=weight, url=f"/{number}")
            for number, weight in enumerate(weights)
        ),
        seed=seed,
    )


@given(WEIGHTS, SEEDS, st.integers(0, 3_000))
def test_the_requests_of_a_target_can_be_counted_without_asking_each_index(
    weights: list[int], seed: int | None, stop: int
) -> None:
    """How many of the first indices ask it."""
    spec = build(weights, seed)
    mix = RequestMix(spec)

    names = Counter(mix.find(index).name for index in range(stop))

    counted = {
        target.name: count_target_requests(spec, place, stop) for place, target in enumerate(spec.targets)
    }
    assert counted == {target.name: names[target.name] for target in spec.targets}


@given(WEIGHTS, SEEDS, INDICES)
def test_each_target_has_exactly_its_weight_in_each_block(
    weights: list[int], seed: int | None, index: int
) -> None:
    """A block is as many indices in a row as the weights sum to, without what divides them all."""
    mix, divisor = RequestMix(build(weights, seed)), gcd(*weights)
    size = sum(weights) // divisor
    begin = index // size * size
    names = Counter(mix.find(number).name for number in range(begin, begin + size))
    assert names == {f"t{number}": weight // divisor for number, weight in enumerate(weights)}
    # What an index asks depends on the spec alone.
    spec = build(weights, seed)
    first = RequestMix(spec).find(index)
    RequestMix(spec).find(index + 1)
    for workers in (1, 7):
        other = Spec(urls=spec.urls, targets=spec.targets, seed=spec.seed, workers=workers)
        assert RequestMix(decode_spec(encode_spec(other))).find(index) == first


@settings(max_examples=20)
@given(WEIGHTS, SEEDS, st.integers(1, 9), INDICES)
def test_every_target_is_asked_at_every_base_url(
    weights: list[int], seed: int | None, bases: int, index: int
) -> None:
    """Base URLs are used in turn, index by index, as the URLs of a spec without targets are."""
    spec = build(weights, seed, bases)
    mix = RequestMix(spec)
    assert len(mix.turns) % bases == 0
    for number in range(index, index + 20):
        assert mix.find(number).url.startswith(spec.urls[number % bases])
    assert {mix.templates[turn].name for turn in mix.turns} == {target.name for target in spec.targets}
    # The coordinator finds the target of an index without any url.
    turns = find_target_turns(spec)
    assert list_target_names(spec)[turns[index % len(turns)]] == RequestMix(spec).find(index).name
    assert (list_target_names(Spec()), list(find_target_turns(Spec()))) == (("",), [0])


def test_the_seed_changes_the_order() -> None:
    """Without a seed it is that of the seed 0."""
    orders = [RequestMix(build([1, 2, 3], seed)).turns for seed in (None, 0, 1)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


@pytest.mark.heavy
def test_no_mix_takes_more_than_some_megabytes() -> None:
    """Whatever the weights, and however many base URLs there are."""
    heaviest = RequestMix(build([1000] * 99 + [999], 1, 1000))
    assert len(heaviest.turns) <= 1 << 20
    assert len(heaviest.turns) % 99_999 == 0
    assert len(RequestMix(build([3], 1, 1000)).turns) == 1000


def test_a_spec_without_targets_uses_its_urls_in_turn() -> None:
    """Each URL is a template without a name; a spec without any has none."""
    spec = Spec(urls=(Url("http://a/"), Url("http://b/")), method="PUT", body="x")
    mix = RequestMix(spec)
    assert [mix.find(index).url for index in (0, 1, 2, 10**15 + 1)] == [
        "http://a/", "http://b/", "http://a/", "http://b/",
    ]  # fmt: skip
    assert {(each.name, each.method, each.body, each.expect) for each in mix.templates} == {
        ("", "PUT", "x", spec.expectation)
    }
    assert RequestMix(Spec()).templates == ()
    # A template has all that its request needs.
    spec = parse_spec(
        Source(
            "spec.yaml",
            {
                "base-url": "https://shop.example/api/",
                "header": {"Accept": "*/*", "X-Id": "{i}"},
                "expect-status": "2xx",
                "expect-body": "order",
                "targets": [
                    {"name": "item", "weight": 3, "url": "/items/{i}", "header": {"accept": "text/html"}},
                    {"name": "buy", "url": "http://other.example/", "json": [1], "expect": {"status": 201}},
                ],
            },
        )
    )
    item, buy = RequestMix(spec).templates
    assert (item.name, item.url, item.method) == ("item", "https://shop.example/api/items/{i}", "GET")
    assert item.headers == ("X-Id: {i}", "accept: text/html")
    assert item.expect == spec.expectation
    assert (buy.url, buy.method, buy.body, buy.is_json) == ("http://other.example/", "POST", "[1]", True)
    assert buy.headers == ("Accept: */*", "X-Id: {i}", "Content-Type: application/json")
    assert (buy.expect.status, buy.expect.body) == (("201",), ("order",))
    # A target that needs a base url has no template without one.
    with pytest.raises(ValueError, match=r"^/0 begins with a path, but there is no base URL$"):
        RequestMix(build([1], bases=0))


@given(WEIGHTS, SEEDS, INDICES, st.integers(1, 4))
def test_a_single_request_can_be_picked_out_of_a_spec(
    weights: list[int], seed: int | None, index: int, bases: int
) -> None:
    """What is left of the spec has only its template, for whatever index."""
    spec = build(weights, seed, bases)
    assert RequestMix(pick_request(spec, index)).templates == (RequestMix(spec).find(index),)


@given(INDICES, st.integers(1, 4))
def test_a_single_url_can_be_picked_out_of_several(index: int, urls: int) -> None:
    """So it is without targets."""
    spec = Spec(urls=tuple(Url(f"http://h{number}/") for number in range(urls)), body="b")
    assert RequestMix(pick_request(spec, index)).templates == (RequestMix(spec).find(index),)


SERVERS = ["http://s1:1/", "http://s2:2"]


def test_own_servers_are_told_the_delay_and_the_seed_that_a_run_asks_for() -> None:
    """A run that asks for none has what the servers were started with."""
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"delay": "0..3s", "seed": 7}, ["Oku-Delay: 0..3s", "Oku-Seed: 7"]),
        ({"delay": "0s"}, ["Oku-Delay: 0s"]),
        ({"seed": 0}, ["Oku-Seed: 0"]),
    ]
    for asked, said in cases:
        assert ask_servers(Spec(**asked), "r1", SERVERS).headers == ("Oku-Run: r1", *said)
    # Own servers are asked by address and told the run.
    spec = ask_servers(Spec(requests=100, headers=(Header("A: b"),), concurrency=7), "r1", SERVERS)
    assert spec.urls == ("http://s1:1/{i}", "http://s2:2/{i}")
    assert spec.headers == ("A: b", "Oku-Run: r1")
    assert (spec.requests, spec.concurrency) == (100, 7)
    # Targets say what they ask of own servers. Their URLs come behind the addresses.
    targets = (Target(name="a", url="/a/{i}"),)
    assert ask_servers(Spec(targets=targets), "r1", SERVERS).urls == ("http://s1:1", "http://s2:2")
    # A target of others is told nothing. Its spec is sent as it was written.
    spec = Spec(urls=(Url("http://example.org/{i}"),), delay="1s", seed=1)  # type: ignore[arg-type]
    assert ask_servers(spec, "r1", SERVERS) == spec
