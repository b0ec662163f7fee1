"""The broker and the network to it: queues whose messages are lost, doubled, delayed and reordered.

It behaves as Valkey does under kombu: a message that is acknowledged on intake is gone with the connection
that it travels on; one that is acknowledged later comes again when it has not been for some seconds; what is
published to nobody is lost.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kombu.exceptions import OperationalError
from tests.simulation.machine.process import Process
from tests.simulation.machine.scheduler import Scheduler
from tests.simulation.story import Story

_VISIBILITY_S = 5.0
_EXPIRES_S = 60.0
_KEPT = 300
_LONGEST_HELD_S = 90.0
_LONGEST_UNNOTICED_S = 10.0
"""So long a process may wait for a peer that is cut off (`oku_core.broker.transport`)."""


@dataclass
class Trouble:
    """What befalls messages: the share that is lost, doubled, held back, or taken although sending fails."""

    lost: float = 0.0
    doubled: float = 0.0
    held: float = 0.0
    misreported: float = 0.0


@dataclass
class Delivery:
    """A message on its way to a consumer.

    Attributes:
        queue: where it was.
        payload: the sealed message.
    """

    queue: str
    payload: Any
    is_acknowledged: bool = False


@dataclass
class _Queue:
    messages: deque[Any] = field(default_factory=deque)
    consumer: "Subscription | None" = None
    idle_since: float = 0.0


@dataclass
class Subscription:
    """A process that listens to a queue or an exchange.

    Attributes:
        connection: who listens.
        name: of the queue or exchange.
        take: called, in the process, with each delivery.
        acknowledges: whether a message stays until `acknowledge`; otherwise it is gone when it is taken.
        is_queue: whether it is a queue.
        arrives_at: when the last delivery arrives: none overtakes another on a connection.
    """

    connection: "Connection"
    name: str
    take: Callable[[Delivery], None]
    acknowledges: bool = False
    is_queue: bool = True
    arrives_at: float = 0.0


class Connection:
    """The way of one process to the broker and back.

    Args:
        broker: at the other end.
        process: whose it is.
        note_connected: called in the process whenever the connection is there again.
    """

    def __init__(
        self, broker: "Broker", process: Process, note_connected: Callable[[], None] = lambda: None
    ) -> None:
        self.broker = broker
        self.process = process
        self.is_cut = False
        self.is_up = broker.is_up
        self.noticed_at = 0.0
        """When the process notices, or has noticed, that the connection was lost last."""
        self.generation = 0
        self.subscriptions: list[Subscription] = []
        self._note_connected = note_connected
        broker.connections.append(self)
        process.on_kill.append(self.close)

    @property
    def seems_up(self) -> bool:
        """Whether the process believes that it is connected."""
        return self.is_up or self.broker.now < self.noticed_at

    def publish(self, queue: str, payload: Any) -> None:
        """Put a message into a queue; `OperationalError` if the broker cannot be reached."""
        self._check()
        self.broker.put(queue, payload)
        self._misreport()

    def publish_to_all(self, exchange: str, payload: Any) -> None:
        """Give a message to all who listen to an exchange now."""
        self._check()
        self.broker.spread(exchange, payload)
        self._misreport()

    def subscribe(
        self,
        name: str,
        take: Callable[[Delivery], None],
        *,
        acknowledges: bool = False,
        is_queue: bool = True,
    ) -> None:
        """Listen to a queue, or to an exchange."""
        subscription = Subscription(self, name, take, acknowledges, is_queue)
        self.subscriptions.append(subscription)
        self.broker.attach(subscription)

    def lose(self, unnoticed_s: float = 0.0) -> None:
        """The connection breaks, which is noticed a while later; it comes back by itself when it can."""
        self.is_up = False
        self.noticed_at = self.broker.now + unnoticed_s
        self.generation += 1
        self.broker.detach(self)

    def restore(self) -> None:
        """Connect again, if nothing is in the way."""
        if self.is_up or self.is_cut or not self.broker.is_up or not self.process.is_alive:
            return
        self.is_up = True
        for subscription in self.subscriptions:
            self.broker.attach(subscription)
        self.process.call_soon(self._note_connected)

    def close(self) -> None:
        """The process is gone."""
        self.is_up = False
        self.generation += 1
        self.broker.detach(self)
        if self in self.broker.connections:
            self.broker.connections.remove(self)

    def _check(self) -> None:
        if not self.process.is_alive or not self.is_up:
            raise OperationalError("the broker cannot be reached")

    def _misreport(self) -> None:
        if self.broker.draw(self.broker.trouble.misreported):
            self.broker.story.note_fault(f"{self.process.name} is told that its message was not taken")
            raise OperationalError("the connection was lost")


class Broker:
    """The broker.

    Args:
        scheduler: the time.
        chance: decides what befalls messages.
        story: what happens.
        latency_s: how long a message takes at most to get here, and from here.
    """

    def __init__(
        self, scheduler: Scheduler, chance: random.Random, story: Story, latency_s: float = 0.005
    ) -> None:
        self.story = story
        self.trouble = Trouble()
        self.is_up = True
        self.connections: list[Connection] = []
        self.history: deque[tuple[str, Any]] = deque(maxlen=_KEPT)
        """Messages that somebody has recorded, to replay them."""
        self._scheduler = scheduler
        self._chance = chance
        self._latency_s = latency_s
        self._queues: dict[str, _Queue] = {}

    def draw(self, share: float) -> bool:
        """Whether something that befalls a share of the messages befalls this one."""
        return share > 0 and self._chance.random() < share

    @property
    def now(self) -> float:
        """The true time."""
        return self._scheduler.now

    @property
    def waiting(self) -> int:
        """How many messages wait in all queues."""
        return sum(len(queue.messages) for queue in self._queues.values())

    def put(self, name: str, payload: Any) -> None:
        """A message for a queue has come in."""
        self.history.append((name, payload))
        for delay_s in self._draw_delays(name):
            self._scheduler.after(delay_s, lambda: self._store(name, payload))

    def spread(self, exchange: str, payload: Any) -> None:
        """A message for all who listen has come in."""
        self.history.append((exchange, payload))
        for connection in self.connections:
            for subscription in connection.subscriptions:
                if subscription.name == exchange and connection.is_up:
                    for delay_s in self._draw_delays(exchange):
                        self._send_off(subscription, payload, delay_s)

    def acknowledge(self, delivery: Delivery) -> None:
        """A message that stays until then has been dealt with."""
        delivery.is_acknowledged = True

    def attach(self, subscription: Subscription) -> None:
        """Somebody listens to a queue."""
        if not subscription.connection.is_up or not subscription.is_queue:
            return
        queue = self._queues.setdefault(subscription.name, _Queue())
        queue.consumer = subscription
        self._hand_out(queue, subscription.name)

    def detach(self, connection: Connection) -> None:
        """Somebody listens no more."""
        for name, queue in self._queues.items():
            if queue.consumer is not None and queue.consumer.connection is connection:
                queue.consumer, queue.idle_since = None, self._scheduler.now
                self._scheduler.after(_EXPIRES_S + 1.0, lambda name=name: self._expire(name))  # type: ignore[misc]

    def go_away(self, *, with_data: bool) -> None:
        """The broker is killed, with or without what is in its queues."""
        self.is_up = False
        for connection in tuple(self.connections):
            connection.lose()
        if with_data:
            for queue in self._queues.values():
                queue.messages.clear()

    def come_back(self) -> None:
        """The broker is there again; those who use it connect one after the other."""
        self.is_up = True
        for connection in tuple(self.connections):
            self._scheduler.after(self._chance.uniform(0.05, 1.5), connection.restore)

    def cut(self, connection: Connection) -> None:
        """Nothing passes between the broker and one process any more."""
        connection.is_cut = True
        connection.lose(self._chance.choice((0.0, self._chance.uniform(0.0, _LONGEST_UNNOTICED_S))))

    def heal(self, connection: Connection) -> None:
        """Messages pass again."""
        connection.is_cut = False
        self._scheduler.after(self._chance.uniform(0.05, 1.5), connection.restore)

    def _draw_delays(self, name: str) -> list[float]:
        """When a message arrives, once for each time that it does."""
        trouble, usual_s = self.trouble, self._chance.uniform(0.0002, self._latency_s)
        if self.draw(trouble.lost):
            self.story.note_fault(f"a message to {name} is lost")
            return []
        if self.draw(trouble.doubled):
            again_s = self._chance.choice((0.0, 0.01, 1.0, 8.0, 70.0)) * self._chance.random()
            self.story.note_fault(f"a message to {name} comes again {again_s:.2f} s later")
            return [usual_s, usual_s + again_s]
        if self.draw(trouble.held):
            held_s = self._chance.choice((0.05, 0.5, 5.0, _LONGEST_HELD_S)) * self._chance.random()
            self.story.note_fault(f"a message to {name} is held back for {held_s:.2f} s")
            return [usual_s + held_s]
        return [usual_s]

    def _store(self, name: str, payload: Any) -> None:
        if not self.is_up:
            return
        queue = self._queues.setdefault(name, _Queue(idle_since=self._scheduler.now))
        queue.messages.append(payload)
        self._hand_out(queue, name)

    def _hand_out(self, queue: _Queue, name: str) -> None:
        while queue.messages and queue.consumer is not None:
            payload = queue.messages.popleft()
            delivery = Delivery(name, payload)
            if queue.consumer.acknowledges:
                self._scheduler.after(_VISIBILITY_S, lambda given=delivery: self._give_again(given))  # type: ignore[misc]
            self._send_off(queue.consumer, payload, self._chance.uniform(0.0002, self._latency_s), delivery)

    def _give_again(self, delivery: Delivery) -> None:
        if not delivery.is_acknowledged and self.is_up:
            self._store(delivery.queue, delivery.payload)
        elif not delivery.is_acknowledged:
            self._scheduler.after(_VISIBILITY_S, lambda: self._give_again(delivery))

    def _send_off(
        self, subscription: Subscription, payload: Any, delay_s: float, delivery: Delivery | None = None
    ) -> None:
        connection = subscription.connection
        generation = connection.generation
        given = delivery or Delivery(subscription.name, payload)

        def arrive() -> None:
            if connection.generation == generation and connection.process.is_alive:
                connection.process.call_soon(subscription.take, given)

        at = max(self._scheduler.now + delay_s, subscription.arrives_at)
        if delay_s <= self._latency_s:
            subscription.arrives_at = at
        self._scheduler.after(at - self._scheduler.now, arrive)

    def _expire(self, name: str) -> None:
        queue = self._queues.get(name)
        # Only the queues of single processes expire with them.
        if queue is None or queue.consumer is not None or "." not in name:
            return
        if self._scheduler.now - queue.idle_since >= _EXPIRES_S:
            del self._queues[name]
