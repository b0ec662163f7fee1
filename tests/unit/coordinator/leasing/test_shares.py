import pytest

from oku_coordinator.leasing.ranges.shares import Shares, is_shared
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.order import Control
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec


def build_spec(**keys: object) -> Spec:
    """A spec as a user writes it."""
    return parse_spec(Source(None, {"url": "http://h/", **keys}))


def build_workers(*names: str) -> list[WorkerState]:
    """Workers of these names."""
    return [WorkerState(name, f"b{name}", 0.0) for name in names]


@pytest.mark.parametrize(
    ("keys", "shared"),
    [
        ({"requests": 10}, False),
        ({"duration": "10s"}, False),
        ({"stages": ["10s:5"]}, True),
        ({"requests": 10, "max-rate": "5/s"}, True),
        ({"rate": "5/s", "duration": "10s"}, False),
    ],
)
def test_a_closed_run_with_one_limit_for_all_workers_is_shared(
    keys: dict[str, object], *, shared: bool
) -> None:
    """In open runs waves say how many lanes there are."""
    assert is_shared(build_spec(**keys)) == shared


def test_workers_are_told_their_places_when_these_change_and_every_few_seconds() -> None:
    """A message may be lost."""
    shares, spec = Shares(), build_spec(stages=["10s:5"])
    first = [Control(incarnation="bv", share=(0, 2)), Control(incarnation="bw", share=(1, 2))]
    assert shares.assign(spec, build_workers("w", "v"), 0.0) == first
    assert shares.assign(spec, build_workers("v", "w"), 1.0) == []
    assert shares.assign(spec, build_workers("v", "w"), 3.0) == first
    assert shares.assign(spec, build_workers("w"), 3.5) == [Control(incarnation="bw", share=(0, 1))]
    assert (shares.find("bw"), shares.find("bv")) == ((0, 1), None)


def test_a_run_that_is_not_shared_has_no_shares() -> None:
    """Its workers need none."""
    shares = Shares()
    assert shares.assign(build_spec(requests=5), build_workers("w"), 0.0) == []
    assert shares.find("bw") is None


def test_while_many_come_shares_change_no_faster_than_workers_can_be_told() -> None:
    """A change is told to everybody: a thousand who come one by one would take a million messages."""
    shares, spec = Shares(), build_spec(stages=["10s:5"])
    names = [f"w{number:04}" for number in range(1000)]
    assert len(shares.assign(spec, build_workers(*names), 0.0)) == 1000
    assert shares.assign(spec, build_workers(*names, "x"), 1.9) == []
    assert (shares.find("bw0999"), shares.find("bx")) == ((999, 1000), None)
    assert len(shares.assign(spec, build_workers(*names, "x"), 2.1)) == 1001
    assert shares.find("bx") == (1000, 1001)
