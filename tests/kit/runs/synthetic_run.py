"""Lines of a run that never was, as docs/metrics.md describes them, for tests and pictures of dashboards.

Everything is computed from the second and the worker, nothing is random: sums can be foretold.
"""

import gzip
import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import pairwise
from typing import Any

from tests.kit.outcomes import make_counts

from oku_core.accounting.outcome import build_outcome_counts
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.summary_lines import build_threshold_lines
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

Line = tuple[Mapping[str, str], int, str]
"""Labels, time in ns, text."""

TARGET, LOAD = "item, buy at http://shop.test", "3,000/s for 2 min"
"""What it is about, in words."""
LEASE_S = 10
COVERAGE_S = 5
PARTS = 50
_BATCH = 5000
_BOUNDS = (
    "4", "5", "6.3", "8", "10", "12.5", "16", "20", "25", "31.5", "40", "50", "63", "80", "100", "125", "160",
    "200", "250", "315", "400", "500", "630", "800", "1000", "1250", "1600", "2000",
)  # fmt: skip
_SHARES = (
    1, 3, 9, 22, 50, 100, 180, 280, 380, 440, 440, 380, 280, 180, 110, 64, 36,
    20, 12, 8, 5, 4, 3, 2, 2, 1, 1, 1,
)  # fmt: skip
"""How the answers of a second lie in these buckets, in proportion."""


@dataclass(frozen=True, kw_only=True)
class SyntheticRun:
    """A run.

    Attributes:
        run: its id.
        name: its name; empty for none.
        start: Unix time of its first second.
        seconds: how long it took.
        rate: requests of one worker in a second.
        workers: how many there were.
        loses_worker: whether the last one is lost half-way.
        is_at_rest: whether it has been completed, with a summary.
        late_before: lines of seconds before this one are in the stream of late ones.
        has_rate: whether it was sent at a rate, in two phases, each half of it, to two targets: four of five
            requests to the one, and all that failed to the other; and had a threshold, which failed. It
            was paused half-way, when that was undecided.
    """

    run: str
    start: int
    name: str = "synthetic"
    seconds: int = 120
    rate: int = 1000
    workers: int = 3
    loses_worker: bool = True
    is_at_rest: bool = True
    late_before: int = 0
    has_rate: bool = False

    @property
    def requests(self) -> int:
        """How many it made."""
        return self.rate * sum(len(self._living(second)) for second in range(self.seconds))

    @property
    def failures(self) -> int:
        """How many of them timed out: one of each worker in every tenth second."""
        return sum(len(self._living(second)) for second in range(0, self.seconds, 10))

    def build_lines(self) -> Iterator[Line]:
        """All lines, in order of time."""
        yield self._line("event", -0.01, type="state", state="running", text="the run is running")
        for worker in self._living(0):
            name = self._name(worker)
            yield self._line("event", -0.005, type="worker_joined", worker=name, text=f"worker {name} joined")
        for second in range(self.seconds):
            yield from self._build_second(second)
        if self.is_at_rest:
            yield from self._build_end()

    def _build_second(self, second: int) -> Iterator[Line]:
        living = self._living(second)
        if self.loses_worker and second == self._lost_at:
            yield from self._build_loss(second)
        if self.has_rate and second == self.seconds // 2:
            accounted = self._accounted(second)
            yield from self._build_results(second, ThresholdVerdict.UNDECIDED, self.failures // 2, accounted)
        yield from self._build_ticks(second)
        for bound, share in zip(_BOUNDS, _SHARES, strict=True):
            count = round(self.rate * len(living) * share / sum(_SHARES) * (1 + 0.3 * math.sin(second / 9)))
            if count:
                yield self._line("latency", second, le=bound, requests=count)
        for index, worker in enumerate(living):
            yield self._line("worker", second + index / 1000, **self._build_worker(second, worker))
        if second % COVERAGE_S == 0 or second == self.seconds - 1:
            yield from self._build_coverage(second)
        for index, worker in enumerate(living):
            length = self._lease_s(second)
            if length:
                yield from self._build_range(second + index / 1000, worker, length)

    def _build_ticks(self, second: int) -> Iterator[Line]:
        """The line of a second; of every fifth one, a third of the counts come later, in another line."""
        tick = self._build_tick(second)
        late = tick["requests_ended"] // 3 if second % 5 == 3 else 0
        rest = {name: tick[name] - late for name in ("requests_ended", "ok")}
        if late:
            counts = {"requests_ended": late, "requests_sent": 0, **_build_outcomes(late, 0)}
            yield self._line("tick", second - 0.0005, seconds=0, active_s=float(second), **counts)
        yield self._line("tick", second, **tick | rest)

    def _build_tick(self, second: int) -> dict[str, Any]:
        living = len(self._living(second))
        requests, timeouts = self.rate * living, living if second % 10 == 0 else 0
        accounted = self._accounted(second)
        done = self.rate * sum(len(self._living(other)) for other in range(second + 1))
        leased = min(self.requests - accounted, 2 * LEASE_S * self.rate * living)
        swing = 1 + 0.3 * math.sin(second / 9)
        is_last = self.is_at_rest and second == self.seconds - 1
        return {
            "state": "completed" if is_last else "running",
            "target": TARGET,
            "load": LOAD,
            "requests_total": self.requests,
            "accounted": accounted,
            "leased": leased,
            "pending": self.requests - accounted - leased,
            "done": done,
            "requests_ended": requests,
            "requests_sent": requests,
            **_build_outcomes(requests, timeouts),
            "bytes_received": 13 * (requests - timeouts),
            "seconds": 1.0,
            "rate_rps": requests,
            "in_flight": 100 * living,
            "mean_ms": 30 * swing,
            "p50_ms": 25 * swing,
            "p90_ms": 60 * swing,
            "p99_ms": 150 * swing,
            "p99_9_ms": 260 * swing,
            "max_ms": 500 * swing,
            "resent_at_most": self.rate if self.loses_worker and second >= self._lost_at else 0,
            "active_s": second + 1.0,
            "workers": living,
            "lag_s": 0.004,
            **self._build_plan(second, requests, swing),
        }

    def _build_plan(self, second: int, requests: int, swing: float) -> dict[str, Any]:
        """What the tick of a run with a rate has in addition."""
        if not self.has_rate:
            return {}
        return {
            "requests_planned": requests,
            "phase": self._find_phase(second),
            "clock_s": second + 1.0,
            "length_s": float(self.seconds),
            "clock_bound_s": 0.0004 * swing,
            **_build_due_quantiles(swing),
        }

    def _find_phase(self, second: float) -> str:
        return "ramp" if second < self.seconds / 2 else "soak"

    def _build_worker(self, second: int, worker: int) -> dict[str, Any]:
        return {
            "worker": self._name(worker),
            "seconds": 1.0,
            "requests_ended": self.rate,
            "rate_rps": self.rate,
            "in_flight": 100,
            "leases": 2,
            "p50_ms": 25.0 + worker,
            "p99_ms": 150.0 + worker,
            **({"lateness_p99_ms": 2.0 + worker, "clock_bound_s": 0.0004} if self.has_rate else {}),
            "cpu_share": 0.5 + 0.01 * (worker % 40),
            "rss_mb": 60 + worker % 40 + second / 100,
            "lag_s": 0.002,
        }

    def _build_range(self, second: float, worker: int, length: int) -> Iterator[Line]:
        whole = int(second)
        requests = self.rate * length
        timeouts = sum(1 for other in range(whole - length + 1, whole + 1) if other % 10 == 0)
        parts: list[tuple[dict[str, Any], int, int]] = [({}, requests, timeouts)]
        if self.has_rate:
            names = {"phase": self._find_phase(second), **_build_due_quantiles(1)}
            parts = [({"target": "buy", **names}, requests // 5, timeouts)]
            parts.append(({"target": "item", **names}, requests - requests // 5, 0))
        start = (whole - length + 1) * self.rate * self.workers + worker * requests
        for place, (names, part, failed) in enumerate(parts):
            yield self._line(
                "range",
                second + place / 1_000_000,
                lease=f"{self.run}-{whole}-{worker}",
                worker=self._name(worker),
                start=start,
                stop=start + requests,
                requests=part,
                **_build_outcomes(part, failed),
                not_sent_in_flight_cap=0, not_sent_late=0, not_sent_not_dealt=0,
                **names,
                bytes_received=13 * (part - failed),
                mean_ms=30.0, p50_ms=25.0, p90_ms=60.0, p99_ms=150.0, p99_9_ms=260.0, max_ms=500.0,
                started_at=self.start + whole - length,
                seconds=float(length),
                cpu_s=0.0 if place else 0.5 * length,
                peak_rss_mb=60.0 + worker, max_lag_s=0.002, busy_share=0.55,
            )  # fmt: skip
        yield self._line(
            "status", second, worker=self._name(worker), status="200", requests=requests - timeouts
        )

    def _build_loss(self, second: int) -> Iterator[Line]:
        lost = self._name(self.workers - 1)
        text = f"worker {lost} is dead: it was silent for too long, or was restarted"
        yield self._line("event", second, type="worker_lost", worker=lost, text=text)
        yield self._line(
            "event", second + 0.001, type="lease_expired", worker=lost, lease="lost", reason="worker_lost",
            requests=self.rate, text=f"a lease of {lost} was taken back: worker_lost",
        )  # fmt: skip
        text = "a coordinator has started"
        yield self._line("event", second + 0.002, type="coordinator_started", text=text)
        text = "the target is gone: no request was ok for 10 s"
        yield self._line("event", second + 0.003, type="target_gone", text=text)
        text = "the target answers again after 12 s"
        yield self._line("event", second + 0.004, type="target_back", text=text)

    def _build_coverage(self, second: int) -> Iterator[Line]:
        tick = self._build_tick(second)
        cuts = [self.requests * part // PARTS for part in range(PARTS + 1)]
        for part, (start, stop) in enumerate(pairwise(cuts)):
            accounted = min(max(tick["accounted"] - start, 0), stop - start)
            leased = min(max(tick["accounted"] + tick["leased"] - start, 0), stop - start) - accounted
            again = tick["resent_at_most"] if start <= self.requests // 2 < stop else 0
            yield self._line(
                "coverage", second, part=f"{part:02d}", start=start, stop=stop, accounted=accounted,
                leased=leased, pending=stop - start - accounted - leased, again=again,
            )  # fmt: skip

    def _build_end(self) -> Iterator[Line]:
        end = self.seconds - 0.5
        flags = {"unanswered": self.failures} | ({"worker_lost": self.rate} if self.loses_worker else {})
        for index, (flag, requests) in enumerate(flags.items()):
            yield self._line(
                "event", end + index / 1000, type="validity", flag=flag, requests=requests,
                text=f"{requests} requests: {flag}",
            )  # fmt: skip
        yield self._line("event", end + 0.1, type="state", state="completed", text="the run is completed")
        outcomes = _build_outcomes(self.requests, self.failures)
        yield self._line(
            "summary",
            end + 0.2,
            run=self.run,
            name=self.name,
            state="completed",
            requests=self.requests,
            accounted=self.requests,
            resent_at_most=self.rate if self.loses_worker else 0,
            outcomes=outcomes,
            statuses={"200": self.requests - self.failures},
            queued_s=1.5,
            throughput_rps=self.requests / self.seconds,
            latency_ms={
                "min": 9.1,
                "mean": 30.2,
                "p50": 25.1,
                "p90": 60.3,
                "p95": 80.2,
                "p99": 150.3,
                "p99_9": 260.6,
                "max": 650.1,
            },
            **(_PLANNED if self.has_rate else {}),
        )
        for name in ("ramp", "soak") if self.has_rate else ():
            yield self._line(
                "phase", end + 0.2, phase=name, begin_s=0.0, requests=self.requests // 2,
                due=self.requests // 2, completed=self.requests // 2, sent_rps=1234.5, completed_rps=1230.0,
                planned_rps=1235.0, p50_ms=25.0, p99_ms=150.0, **_build_due_quantiles(1),
            )  # fmt: skip

        yield from self._build_results(end + 0.2, ThresholdVerdict.FAILED, self.failures, self.requests)
        for place, name in enumerate(("item", "buy") if self.has_rate else ()):
            yield self._line(
                "target", end + 0.2 + place / 1000, target=name, rate_rps=2000.0 - 1500 * place,
                p50_ms=25.0, p90_ms=60.0, p99_ms=150.0, **_build_due_quantiles(1),
            )  # fmt: skip

    def _build_results(
        self, second: float, verdict: ThresholdVerdict, failures: int, accounted: int
    ) -> Iterator[Line]:
        """What had failed until a second in which it came to rest, and what had become of its threshold."""
        target = {"target": "buy"} if self.has_rate else {}
        yield self._line(
            "failure", second, **target, outcome="timeout", reason="no answer within 10s",
            requests=failures, first_index=7, last_index=accounted - 1,
        )  # fmt: skip
        if self.has_rate:
            summary = ThresholdSummary(
                expression="p99 < 100ms", verdict=verdict, value=150.3, limit=100.0, unit=FigureUnit.MS,
                holds=False, against=accounted // 50, allowed=self.requests // 100,
            )  # fmt: skip
            [fields] = build_threshold_lines([summary])
            yield self._line("threshold", second, **fields)

    def _living(self, second: int) -> range:
        is_short = self.loses_worker and second >= self._lost_at
        return range(self.workers - 1 if is_short else self.workers)

    @property
    def _lost_at(self) -> int:
        return self.seconds // 2 // LEASE_S * LEASE_S

    def _lease_s(self, second: int) -> int:
        """How long the leases are that end with this second; 0 when none does."""
        done = second % LEASE_S + 1
        return done if done == LEASE_S or second == self.seconds - 1 else 0

    def _accounted(self, second: int) -> int:
        end = second + 1 if self._lease_s(second) else second // LEASE_S * LEASE_S
        return self.rate * sum(len(self._living(other)) for other in range(end))

    def _name(self, worker: int) -> str:
        return f"worker-{worker + 1}"

    def _line(self, kind: str, second: float, **fields: object) -> Line:
        labels = {"app": "oku", "run": self.run, "kind": kind}
        if self.name:
            labels["name"] = self.name
        if second < self.late_before:
            labels["late"] = "true"
        return labels, round((self.start + second) * 1e9), json.dumps(fields)


_TOTALS = {
    "min": 0.1, "mean": 2.0, "p50": 1.0, "p90": 3.0, "p95": 4.0, "p99": 9.0, "p99_9": 20.0, "max": 50.0,
}  # fmt: skip
"""A distribution of a summary."""
_PLANNED = {
    "response_time_ms": _TOTALS,
    "lateness_ms": _TOTALS,
    "planned_rps": 2500.0,
    "completed_rps": 2490.0,
    "plan": {"seconds": 118, "off_seconds": 2, "off_share": 2 / 118, "missed": 40, "causes": []},
    "verdict": "failed",
}
"""What a summary of a run with a rate, and with a threshold, has in addition."""


def _build_due_quantiles(swing: float) -> dict[str, float]:
    """Response times are a little longer than latencies, and latenesses are short."""
    quantiles = {"p50_ms": 1.0, "p90_ms": 3.0, "p99_ms": 9.0, "p99_9_ms": 20.0, "max_ms": 50.0}
    return {
        f"{prefix}_{name}": value * factor * swing
        for prefix, factor in (("response_time", 20), ("lateness", 0.5))
        for name, value in quantiles.items()
    }


def _build_outcomes(requests: int, timeouts: int) -> dict[str, int]:
    return build_outcome_counts(make_counts(requests - timeouts, timeout=timeouts))


def push(loki_url: str, lines: Iterator[Line]) -> None:
    """Give lines to a Loki, in batches; a time that comes twice in a row is moved by a nanosecond."""
    batch: list[Line] = []
    last: dict[str, int] = {}
    for labels, at_ns, text in lines:
        stream = str(labels)
        at = last[stream] = max(at_ns, last.get(stream, 0) + 1)
        batch.append((labels, at, text))
        if len(batch) == _BATCH:
            _push(loki_url, batch)
            batch = []
    _push(loki_url, batch)


def _push(loki_url: str, batch: list[Line]) -> None:
    streams: dict[str, dict[str, Any]] = {}
    for labels, at_ns, text in batch:
        stream = streams.setdefault(str(labels), {"stream": labels, "values": []})
        stream["values"].append([str(at_ns), text])
    body = gzip.compress(json.dumps({"streams": list(streams.values())}).encode(), 1)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    request = urllib.request.Request(f"{loki_url}/loki/api/v1/push", body, headers)
    for pause_s in (0.5, 1.0, 2.0, 4.0, None):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 204
                return
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.TOO_MANY_REQUESTS or pause_s is None:
                raise
            time.sleep(pause_s)  # more than 4 MB/s; lines that it has already taken it takes as the same
