import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history, keep_second
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.loki.batch import Entry, Refusal
from oku_coordinator.loki.endpoint import LokiTarget
from oku_coordinator.telemetry import publisher as publisher_module
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.telemetry.publisher import Publisher
from oku_core.accounting.run_state import RunState
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor
from oku_core.results.event import EventType
from oku_core.results.lines import LineKind
from oku_core.results.sample import Sample
from oku_core.spec.spec import Spec

TARGET = LokiTarget(url="http://127.0.0.1:3100")


class FakePusher:
    """Takes lines, refuses them, or is in trouble, as a test wants."""

    def __init__(self, _: LokiTarget, *, on_trouble: Callable[[str], None]) -> None:
        self.on_trouble = on_trouble

    taken: list[Entry]
    refuses: Callable[[Entry], bool]
    reason: str
    trouble: str

    async def __aenter__(self) -> Self:
        """As the real one."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """As the real one."""

    async def push(self, entries: Sequence[Entry]) -> list[Refusal]:
        """As the real one."""
        if FakePusher.trouble:
            self.on_trouble(FakePusher.trouble)
            await asyncio.Event().wait()
        refused = [entry for entry in entries if FakePusher.refuses(entry)]
        FakePusher.taken += [entry for entry in entries if entry not in refused]
        return [Refusal(refused, 400, FakePusher.reason)] if refused else []


@pytest.fixture(autouse=True)
def pusher(monkeypatch: pytest.MonkeyPatch) -> type[FakePusher]:
    """Stands in for the pusher; takes everything."""
    FakePusher.taken, FakePusher.refuses, FakePusher.trouble = [], lambda _: False, ""
    FakePusher.reason = "too far behind"
    monkeypatch.setattr(publisher_module, "LokiPusher", FakePusher)
    monkeypatch.setattr(publisher_module, "POLL_S", 0.01)
    return FakePusher


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger with one run that is published."""
    ledger = open_ledger(path, publishes=True)
    change(ledger, create_run, "r1", Spec(requests=10, name="shop"), 0.0)
    yield ledger
    ledger.close()


def keep_ticks(ledger: Ledger, *times: float) -> None:
    """Lines of heatmaps of a kilobyte each."""
    for at in times:
        sample = Sample(
            at=at, seconds=1.0, requests_total=10, accounted=0, leased=0, pending=10, done=0,
            resent_at_most=0, in_flight=0, workers=1,
        )  # fmt: skip
        change(ledger, keep_second, "r1", sample)
        change(ledger, outbox_table.put, "r1", LineKind.LATENCY, at, [{"a": "x" * 1000}])


async def publish(ledger: Ledger, until: Callable[[], bool], **settings: Any) -> Publisher:
    """Let a publisher work until something holds."""
    publisher = Publisher(ledger, TARGET, settings.get("most_bytes", 10**9), Metrics(), SteadyClock())
    publisher.start(Supervisor())
    async with asyncio.timeout(5):
        while not until():  # noqa: ASYNC110  # it is asked, it does not call
            await asyncio.sleep(0)
    await publisher.end(0.0)
    return publisher


async def test_lines_go_to_loki_in_order_and_leave_the_outbox(ledger: Ledger) -> None:
    """They keep their labels and times; late ones go into a stream of their own."""
    now = float(int(time.time()))
    keep_ticks(ledger, now - 1, now)
    await publish(ledger, lambda: not read(ledger, outbox_table.measure).lines)
    labels = [dict(entry.labels) for entry in FakePusher.taken]
    assert [label["kind"] for label in labels] == ["event", "latency", "latency"]
    common = {"app": "oku", "run": "r1", "name": "shop"}
    assert labels[0] == common | {"kind": "event", "late": "true"}
    assert labels[1] == common | {"kind": "latency"}
    assert [entry.at_ns for entry in FakePusher.taken[1:]] == [int(now - 1) * 10**9, int(now) * 10**9]


async def test_what_loki_refuses_is_given_up_and_told(ledger: Ledger) -> None:
    """An event of the run says so, and the lines are not sent again."""
    keep_ticks(ledger, 1.0, 2.0)
    FakePusher.refuses = lambda entry: dict(entry.labels)["kind"] == "latency"
    publisher = await publish(
        ledger, lambda: len(FakePusher.taken) == 2 and not read(ledger, outbox_table.measure).lines
    )
    assert publisher.describe()["refused"] == 2
    event = read(ledger, fetch_history, "r1").events[-1]
    assert event.type == EventType.LINES_REFUSED
    assert event.text == "Loki has refused 2 lines: 400 too far behind"
    assert [dict(entry.labels)["kind"] for entry in FakePusher.taken] == ["event", "event"]


async def test_an_event_that_is_refused_leads_to_no_other(ledger: Ledger) -> None:
    """Otherwise this would never end."""
    FakePusher.refuses = lambda _: True
    publisher = await publish(ledger, lambda: not read(ledger, outbox_table.measure).lines)
    assert publisher.describe()["refused"] == 1
    assert [event.type for event in read(ledger, fetch_history, "r1").events] == [EventType.STATE]


async def test_trouble_keeps_the_lines_and_is_said(ledger: Ledger) -> None:
    """They are kept until it is over, and nobody waits for such a Loki at the end."""
    FakePusher.trouble = "503 not now"
    publisher = Publisher(ledger, TARGET, 10**9, Metrics(), SteadyClock())
    publisher.start(Supervisor())
    async with asyncio.timeout(5):
        while not publisher.describe()["trouble"]:  # noqa: ASYNC110  # it is asked, it does not call
            await asyncio.sleep(0)
        await publisher.end(60.0)
    assert publisher.describe()["lines"] == 1


async def test_at_the_end_what_waits_is_delivered(ledger: Ledger) -> None:
    """That holds as long as Loki takes lines."""
    publisher = Publisher(ledger, TARGET, 10**9, Metrics(), SteadyClock())
    publisher.start(Supervisor())
    keep_ticks(ledger, 1.0, 2.0)
    await publisher.end(5.0)
    assert read(ledger, outbox_table.measure).lines == 0
    assert len(FakePusher.taken) == 3


async def test_an_outbox_that_is_full_is_cut_back(ledger: Ledger) -> None:
    """One event reports the loss of many lines."""
    publisher = Publisher(ledger, TARGET, 20_000, Metrics(), SteadyClock())
    keep_ticks(ledger, *map(float, range(10)))
    await publisher.bound()
    assert publisher.describe()["dropped"] == 0
    keep_ticks(ledger, *map(float, range(10, 40)))
    await publisher.bound()
    dropped = publisher.describe()["dropped"]
    assert dropped > 20
    assert read(ledger, outbox_table.measure).bytes < 20_000
    events = [
        event for event in read(ledger, fetch_history, "r1").events if event.type == EventType.LINES_DROPPED
    ]
    assert [event.requests for event in events] == [None]
    assert f"{dropped} lines" in events[0].text


async def test_lines_from_the_future_wait_until_their_time_is_right(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loki refuses them while the clock is ahead of its own; they are kept, and the reason is told."""
    monkeypatch.setattr(publisher_module, "EARLY_PAUSE_S", 0.01)
    FakePusher.reason = "entry for stream 'x' has timestamp too new: 2030-01-01"
    FakePusher.refuses = lambda entry: entry.at_ns > (time.time() + 600) * 1e9
    wall_s = time.time() + 3600
    clock = SteadyClock(lambda: wall_s, time.monotonic)
    change(ledger, change_state, "r1", RunState.CANCELLED, clock.now())
    publisher = Publisher(ledger, TARGET, 10**9, Metrics(), clock)
    publisher.start(Supervisor())
    async with asyncio.timeout(5):
        while "too new" not in publisher.trouble:  # noqa: ASYNC110  # it is asked, it does not call
            await asyncio.sleep(0)
        assert read(ledger, outbox_table.measure).lines
        wall_s -= 3600
        clock.find_step()
        while read(ledger, outbox_table.measure).lines or publisher.trouble:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await publisher.end(0.0)
    assert [entry.at_ns / 1e9 for entry in FakePusher.taken[1:]] == [pytest.approx(time.time(), abs=30)]
    assert publisher.describe()["refused"] == 0
