from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.connection import Connection
from tests.kit.workers.counting_watchdog import CountingWatchdog

from oku_core.messaging.order import ClockNotice, Control, Intervals, Stop
from oku_workers.broker.celery_worker import listen_to_orders
from oku_workers.broker.coordinator_link import CoordinatorLink
from oku_workers.broker.orders import Orders
from oku_workers.settings import WorkerIdentity
from oku_workers.timing.coordinator_clock import CoordinatorClock


class FakeLoopThread:
    """Does at once what it is told."""

    def post(self, call: Callable[[], Any]) -> None:
        """Call a function."""
        call()


class FakeRunner:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.orders: list[Stop | Control] = []
        self.intervals: list[float] = []
        self.heard = 0
        self.turns: list[str] = []
        self.coordinator_clock = CoordinatorClock("boot", lambda: 0)

    def on_heard(self) -> None:
        """As the lease runner."""
        self.heard += 1

    def set_current_run(self, run: str) -> None:
        """As the lease runner."""
        self.turns.append(run)

    def stop(self, order: Stop) -> None:
        """As the lease runner."""
        self.orders.append(order)

    def control(self, control: Control) -> None:
        """As the lease runner."""
        self.orders.append(control)

    def set_checkpoint_interval(self, interval_s: float) -> None:
        """As the lease runner."""
        self.intervals.append(interval_s)


class FakeHeartbeat:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.intervals: list[float] = []
        self.hurries = 0

    def send_now(self) -> None:
        """As the heartbeat."""
        self.hurries += 1

    def set_interval(self, interval_s: float) -> None:
        """As the heartbeat."""
        self.intervals.append(interval_s)


class Desk:
    """Orders, those whom they are for, and a clock."""

    def __init__(self) -> None:
        self.runner, self.heartbeat, self.now = FakeRunner(), FakeHeartbeat(), 1000.0
        self.link = CoordinatorLink("redis://broker", lambda: self.now)
        self.watchdog = CountingWatchdog()
        parts: Any = (
            FakeLoopThread(),
            self.runner,
            self.heartbeat,
            self.link,
            self.watchdog,
            lambda: self.now,
        )
        self.orders = Orders(*parts)


@pytest.fixture
def desk() -> Desk:
    """A desk that has had no order yet."""
    return Desk()


@pytest.mark.parametrize(
    "order", [Stop(run="r1", up_to=3, grace_s=2.5), Control(incarnation="b1", limits={"l1": 5})]
)
def test_an_order_about_leases_reaches_the_lease_runner(desk: Desk, order: Stop | Control) -> None:
    """The runner gets it unchanged, for it knows which leases are meant."""
    desk.orders.handle(order)
    assert desk.runner.orders == [order]


def build_intervals(number: int, heartbeat_s: float) -> Intervals:
    """An order with another interval for checkpoints, which is three times as long."""
    return Intervals(number=number, heartbeat_s=heartbeat_s, checkpoint_s=3 * heartbeat_s)


def test_what_is_counted_and_what_holds_of_orders() -> None:
    """Those to all come another way: a worker that hears them may be deaf to what waits for it."""
    desk = Desk()
    desk.orders.handle(Control(incarnation="b0"))
    desk.orders.handle(build_intervals(1, 1.0))
    desk.orders.handle(Stop(run="r1", up_to=3, grace_s=2.5))
    assert desk.watchdog.messages == 1
    # Intervals hold until a newer one arrives.
    desk = Desk()
    for number, seconds in [(5, 3.0), (6, 1.0), (5, 3.0), (6, 1.0), (7, 2.0)]:
        desk.orders.handle(build_intervals(number, seconds))
    assert desk.heartbeat.intervals == [3.0, 1.0, 2.0]
    assert desk.runner.intervals == [9.0, 3.0, 6.0]
    # The runner learns that the coordinator speaks.
    desk = Desk()
    for _ in range(2):
        desk.orders.handle(build_intervals(5, 1.0))
    assert desk.runner.heard == 2
    # The worker is linked to the coordinator once that speaks to all.
    desk = Desk()
    desk.orders.handle(Control(incarnation="b1", limits={"l1": 5}))
    assert not desk.link.is_made
    desk.orders.handle(build_intervals(5, 1.0))
    assert desk.link.is_made


def test_what_the_runner_learns_of_intervals() -> None:
    """A copy of an old order does not say that the run has it still."""
    desk = Desk()
    for number, run in ((5, "r1"), (6, ""), (5, "r1"), (7, "r2")):
        desk.orders.handle(Intervals(number=number, heartbeat_s=1.0, checkpoint_s=3.0, run=run))
    assert desk.runner.turns == ["r1", "", "r2"]
    # Any intervals are taken when there was none for a minute.
    desk = Desk()
    desk.orders.handle(build_intervals(100, 3.0))
    desk.now += 60
    desk.orders.handle(build_intervals(7, 1.0))
    assert desk.heartbeat.intervals == [3.0, 1.0]
    # The first intervals are answered at once.
    desk = Desk()
    for number in (5, 5, 6):
        desk.orders.handle(build_intervals(number, 1.0))
    assert desk.heartbeat.hurries == 1
    # The newest order says what the clock of the coordinator is.
    desk = Desk()
    clock = desk.runner.coordinator_clock
    for number, seconds in [(5, 300), (6, 400), (5, 300)]:
        notice = ClockNotice(kernel="boot", offset_ns=seconds * 10**9)
        desk.orders.handle(Intervals(number=number, heartbeat_s=1.0, checkpoint_s=3.0, clock=notice))
    desk.orders.handle(build_intervals(7, 1.0))
    assert clock.now() == 400.0


def test_a_step_ends_with_its_connection_without_an_error(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Celery forgets a connection that is lost, and then stops what has listened on it."""
    app: Any = SimpleNamespace(steps={"consumer": set()})
    inbox: Any = desk.link
    listen_to_orders(app, WorkerIdentity("w", "1"), inbox)
    [build_step] = app.steps["consumer"]
    with Connection("memory://") as connection:
        consumer = SimpleNamespace(connection=connection, steps=[])
        step = build_step(consumer)
        step.start(consumer)
        [listening] = step.consumers
        step.stop(consumer)
        assert listening.channel.closed
        step.start(consumer)
        [listening] = step.consumers
        monkeypatch.setattr(listening, "cancel", fail_to_reach_the_broker)
        consumer.connection = None
        step.stop(consumer)


def fail_to_reach_the_broker() -> None:
    """As whatever is done on a connection that is lost."""
    raise ConnectionError
