from collections.abc import Callable

import msgspec
import pytest
from tests.kit.outcomes import make_counts

from oku_cli.terminal.target_figures import build_live_targets, describe_worst_target
from oku_core.results.tick import TargetTick, Tick

MakeTick = Callable[..., Tick]


@pytest.fixture
def tick(make_tick: MakeTick) -> Tick:
    """The 25th second of a run with three targets, of which nothing was paid yet."""
    targets = [
        TargetTick(name="item", outcomes=make_counts(200), p50_ms=1.0, p99_ms=9.0),
        TargetTick(name="buy", outcomes=make_counts(95, timeout=5, not_sent=10), p50_ms=2.0, p99_ms=20.0),
        TargetTick(name="pay", outcomes=make_counts(0)),
    ]
    return msgspec.structs.replace(make_tick(), targets=targets)


def test_the_live_view_has_the_rate_of_each_target_since_the_start(
    tick: Tick, render: Callable[..., list[str]]
) -> None:
    """What was not sent counts among its requests, but not for its rate."""
    lines = render(build_live_targets(tick, most=3))
    assert [line.split() for line in lines[1:]] == [
        ["item", "200", "100", "%", "8.0/s", "1.00", "ms", "9.00", "ms"],
        ["buy", "110", "86.36", "%", "4.0/s", "2.00", "ms", "20.0", "ms"],
        ["pay", "0", "-", "0/s", "-", "-"],
    ]


def test_user_code_has_its_requests_by_name(tick: Tick, render: Callable[..., list[str]]) -> None:
    """In the place of targets, which it has not."""
    code = msgspec.structs.replace(tick, targets=[], inner_requests=tick.targets)
    head, *rows = (line.split() for line in render(build_live_targets(code, most=3)))
    assert head == ["name", "requests", "ok", "rate", "p50", "p99"]
    assert [row[:2] for row in rows] == [["item", "200"], ["buy", "110"], ["pay", "0"]]
    assert list(describe_worst_target(code)) == ["worst request buy ok 86.36 % p99 20.0 ms"]


def test_a_line_names_the_worst_target(tick: Tick, make_tick: MakeTick) -> None:
    """Of targets that are equally well off it is the slowest; there is none before anything is accounted."""
    assert list(describe_worst_target(tick)) == ["worst target buy ok 86.36 % p99 20.0 ms"]
    calm = msgspec.structs.replace(
        tick, targets=[msgspec.structs.replace(tick.targets[0], name="a"), tick.targets[2]]
    )
    assert list(describe_worst_target(calm)) == ["worst target a ok 100 % p99 9.00 ms"]
    begun = msgspec.structs.replace(tick, targets=[tick.targets[2]])
    assert list(describe_worst_target(begun)) == list(describe_worst_target(make_tick())) == []
