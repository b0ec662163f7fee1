"""Workers that send no request: they take leases from a real broker and report what could have come of them.

`simulated_workers.py BROKER_URL WORKERS RATE FILE`: each worker gets through RATE requests per second. Claim,
one progress event per second and worker, report and acknowledgement are real messages; statuses, latencies
and memory in them are made up. Until SIGTERM; FILE then gets how many leases and requests there were.
"""

import heapq
import itertools
import json
import secrets
import signal
import sys
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from oku_core.histogram import Latency, bucket_bounds_us, bucket_index
from oku_core.lease import Claim, Lease, Report
from oku_core.messaging import (
    LEASES_IN_HAND,
    LEASES_QUEUE,
    PROGRESS_EVENT,
    build_app,
    decode_lease,
    send_message,
)
from oku_core.progress import Progress

_BYTES_OF_ANSWER = 13
_DRAWS = 20_000


class Crew:
    """All the workers of this process.

    Args:
        app: where messages go.
        names: of the workers.
        rate_rps: of each.
    """

    def __init__(self, app: Any, names: list[str], rate_rps: float) -> None:
        self._app = app
        self._rate_rps = rate_rps
        self._boots = {name: secrets.token_hex(8) for name in names}
        self._free_at = dict.fromkeys(names, 0.0)
        self._in_hand: dict[str, set[str]] = {name: set() for name in names}
        self._ended: Counter[str] = Counter()
        self._under_way: list[tuple[float, int, str, Lease, str, Any]] = []
        self._order = itertools.count()
        self.leases = self.requests = 0

    def take(self, body: Any, message: Any) -> None:
        """Claim a lease for the worker that is free first."""
        lease, execution = decode_lease(body[0][0]), secrets.token_hex(8)
        now = time.time()
        name = min(self._free_at, key=self._free_at.__getitem__)
        ends_at = max(now, self._free_at[name]) + (lease.stop - lease.start) / self._rate_rps
        self._free_at[name] = ends_at
        self._in_hand[name].add(lease.id)
        claim = Claim(lease=lease.id, execution=execution, worker=name, boot=self._boots[name], at=now)
        send_message(self._app, claim)
        heapq.heappush(self._under_way, (ends_at, next(self._order), name, lease, execution, message))

    def finish_due(self) -> float:
        """Report the leases that have ended; how long until the next does, at most a second."""
        while self._under_way and self._under_way[0][0] <= time.time():
            _, _, name, lease, execution, message = heapq.heappop(self._under_way)
            self._report(name, lease, execution)
            message.ack()
            self._in_hand[name].discard(lease.id)
        return min(1.0, self._under_way[0][0] - time.time()) if self._under_way else 1.0

    def beat(self, dispatcher: Any) -> None:
        """The progress of every worker since the last beat, in whole leases."""
        for name, boot in self._boots.items():
            ended = self._ended.pop(name, 0)
            progress = Progress(
                worker=name,
                boot=boot,
                at=time.time(),
                leases={lease: [0] * 6 for lease in self._in_hand[name]},
                in_flight=1000,
                outcomes=[ended, 0, 0, 0, 0, 0],
                bytes_received=ended * _BYTES_OF_ANSWER,
                latency=build_latency(ended),
                cpu_share=0.5,
                rss_mb=90.0,
            )
            dispatcher.send(PROGRESS_EVENT, progress=msgspec.to_builtins(progress))

    def _report(self, name: str, lease: Lease, execution: str) -> None:
        count, now = lease.stop - lease.start, time.time()
        self._ended[name] += count
        self.leases += 1
        self.requests += count
        report = Report(
            lease=lease.id,
            execution=execution,
            worker=name,
            boot=self._boots[name],
            start=lease.start,
            done=lease.stop,
            outcomes=[count, 0, 0, 0, 0, 0],
            statuses={"200": count},
            bytes_received=count * _BYTES_OF_ANSWER,
            latency=build_latency(count),
            started_at=now - count / self._rate_rps,
            ended_at=now,
            cpu_s=count / 20_000,
            peak_rss_mb=90.0,
            max_lag_s=0.01,
            cpu_share=0.5,
        )
        send_message(self._app, report)


@lru_cache(maxsize=64)
def build_latency(count: int) -> Latency:
    """So many latencies as in the posts' own case: 0, 1, 2 or 3 s, and some milliseconds (log-normal)."""
    if not count:
        return Latency()
    random = Random(1)
    drawn = Counter(
        bucket_index(random.randint(0, 3) * 1_000_000 + int(random.lognormvariate(0, 0.8) * 3_000))
        for _ in range(_DRAWS)
    )
    buckets: list[int] = []
    seen = given = sum_us = 0
    for index in sorted(drawn):
        seen += drawn[index]
        due = seen * count // _DRAWS
        if due > given:
            buckets += (index, due - given)
            sum_us += (due - given) * bucket_bounds_us(index)[0]
            given = due
    return Latency(
        buckets=buckets,
        sum_us=sum_us,
        min_us=bucket_bounds_us(buckets[0])[0],
        max_us=bucket_bounds_us(buckets[-2])[0],
    )


def run(broker_url: str, workers: int, rate_rps: float) -> Crew:
    """Work until SIGTERM."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    app = build_app(broker_url)
    crew = Crew(app, [f"simulated-{number}" for number in range(1, workers + 1)], rate_rps)
    with app.connection_for_read() as connection, app.connection_for_write() as writing:
        dispatcher = app.events.Dispatcher(writing, buffer_while_offline=False)
        queue = app.amqp.queues[LEASES_QUEUE]
        consumer = app.amqp.TaskConsumer(connection.channel(), queues=[queue], accept=["json"])
        consumer.callbacks = [crew.take]
        consumer.qos(prefetch_count=LEASES_IN_HAND * workers)
        next_beat = 0.0
        with consumer:
            while not ending:
                if time.monotonic() >= next_beat:
                    next_beat = time.monotonic() + 1.0
                    crew.beat(dispatcher)
                wait_s = max(0.001, min(crew.finish_due(), next_beat - time.monotonic()))
                try:
                    connection.drain_events(timeout=wait_s)
                except TimeoutError:
                    continue
    return crew


if __name__ == "__main__":
    broker_url, workers, rate_rps, file = sys.argv[1:]
    crew = run(broker_url, int(workers), float(rate_rps))
    Path(file).write_text(json.dumps({"leases": crew.leases, "requests": crew.requests}))
