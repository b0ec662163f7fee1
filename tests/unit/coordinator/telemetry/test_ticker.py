from collections.abc import Sequence

import pytest
from tests.kit.coordinators.iterations import USER_CODE, build_inner, build_iterations
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.outcomes import make_counts

from oku_coordinator.assembly import Assembly
from oku_coordinator.telemetry.ticker import find_pause_s
from oku_core.accounting.run_state import RunState
from oku_core.results.tick import Tick
from oku_core.spec.spec import Spec


@pytest.mark.parametrize(
    ("now", "pause_s"), [(10.0, 1.0), (10.2, 0.8), (10.3, 1.7), (25.004, 0.996), (9.999, 1.001)]
)
def test_ticks_are_due_at_whole_seconds_and_never_close(now: float, pause_s: float) -> None:
    """A slightly late tick does not shift the next; after a very late one a second is left out."""
    assert find_pause_s(now) == pytest.approx(pause_s)


def catch_ticks(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> Sequence[Tick]:
    """The ticks that are made from now on."""
    ticks: list[Tick] = []
    monkeypatch.setattr(parts.runs.followers, "publish", ticks.append)
    return ticks


def test_ticks_and_metrics_tell_of_inner_requests(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the run of user code that is active; its metrics stay when it is over."""
    ticks = catch_ticks(parts, monkeypatch)
    ledger = parts.ledger
    ledger.runs.create("r1", USER_CODE, 0.0)
    run = ledger.runs.change_state("r1", RunState.RUNNING, 1.0)
    lease = deal_lease(ledger, "r1", 10, 2.0)
    assert lease is not None
    final = build_checkpoint(lease, inner=[build_inner("login", [1001] * 7)], parts=[build_iterations(10)])
    apply_batches(ledger, [build_batch(lease, final)], 5.0)
    parts.ticker.note_turn(run)
    parts.ticker.tick()
    assert [(each.name, each.outcomes, each.p50_ms) for each in ticks[0].inner_requests] == [
        ("login", make_counts(7), 1.001)
    ]
    counter = 'oku_inner_requests_total{name="login",outcome="ok",run="r1"} 7.0'
    assert counter in parts.metrics.expose()[0].decode()
    parts.ticker.note_turn(None)
    assert 'oku_inner_latency_seconds_count{name="login",run="r1"} 7.0' in parts.metrics.expose()[0].decode()


def test_other_runs_have_no_inner_requests(parts: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a run of user code that has made none."""
    ticks = catch_ticks(parts, monkeypatch)
    for name, spec in (("r1", Spec(requests=100)), ("r2", USER_CODE)):
        parts.ledger.runs.create(name, spec, 0.0)
        parts.ticker.note_turn(parts.ledger.runs.change_state(name, RunState.RUNNING, 1.0))
        parts.ticker.tick()
        assert "oku_inner_requests_total{" not in parts.metrics.expose()[0].decode()
        parts.ledger.runs.change_state(name, RunState.FAILED, 2.0)
    assert [tick.inner_requests for tick in ticks] == [[], []]
