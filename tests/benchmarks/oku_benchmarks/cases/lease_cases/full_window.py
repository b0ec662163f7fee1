"""Cases in which a window could run dry: answers that never come or come late, and small leases."""

from dataclasses import dataclass
from pathlib import Path

from oku_benchmarks.cases.lease_cases.lease_case import Finding, LeaseCase, open_site
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.counting_server import Behaviour
from oku_benchmarks.stacks.counting_target import find_duration_s, find_seconds
from oku_core.spec.values.delay import parse_delay

_FULL_GOAL = 0.97
_TIME_GOAL = 1.1
_PATIENCE = 6.0
"""A run that takes longer than so many times what it should has failed."""


@dataclass(frozen=True, kw_only=True)
class _Load:
    behaviour: Behaviour
    concurrency: int
    timeout_s: float
    flags: tuple[str, ...] = ()

    @property
    def work_s(self) -> float:
        """The seconds that the window needs if it is always full."""
        behaviour = self.behaviour
        rare_s = min(self.timeout_s, behaviour.rare_s or self.timeout_s)
        mean_s = (
            parse_delay(behaviour.delay).mean_s * (1 - behaviour.rare_share) + rare_s * behaviour.rare_share
        )
        return behaviour.indices * (behaviour.step_s or mean_s) / self.concurrency

    def measure(self, checkout: Checkout, folder: Path) -> Finding:
        """Play it with one worker."""
        requests = self.behaviour.indices
        allowed_s = _TIME_GOAL * (self.work_s + (self.behaviour.rare_s or self.timeout_s / 2))
        with open_site(checkout, folder, self.behaviour) as site:
            site.stack.start_workers("worker-1")
            command = site.start(
                "run", requests, self.concurrency, "--timeout", f"{self.timeout_s}s", *self.flags
            )
            site.finish(command, _PATIENCE * allowed_s)
            samples = site.target.read()
        seconds = find_seconds(samples, requests, self.concurrency)
        took_s = find_duration_s(samples)
        return Finding(
            text=(
                f"full in {seconds.full_share:.1%} of {len(seconds.working)} s, below half for up to"
                f" {seconds.longest_idle_s} s; {took_s:.1f} s of at most {allowed_s:.1f} s"
            ),
            is_met=seconds.full_share >= _FULL_GOAL and took_s <= allowed_s,
        )


def _measure_hanging(checkout: Checkout, folder: Path) -> Finding:
    behaviour = Behaviour(indices=30_000, rare_share=0.01)
    return _Load(behaviour=behaviour, concurrency=100, timeout_s=10).measure(checkout, folder)


def _measure_late(checkout: Checkout, folder: Path) -> Finding:
    behaviour = Behaviour(indices=60_000, rare_share=0.0005, rare_s=25.0)
    return _Load(behaviour=behaviour, concurrency=50, timeout_s=30).measure(checkout, folder)


def _measure_small_leases(checkout: Checkout, folder: Path) -> Finding:
    behaviour = Behaviour(indices=6_000, delay="100ms")
    flags = ("--range-size", "10")
    return _Load(behaviour=behaviour, concurrency=100, timeout_s=10, flags=flags).measure(checkout, folder)


_FULL_TEXT = (
    "the window is full in at least 97 % of all seconds;"
    " time at most 1.1 times (work / window + half the timeout)"
)

FULL_WINDOW = {
    "hanging": LeaseCase(
        text="1 worker, 100 in flight, 20 ms, 1 % of 30,000 answers never come, timeout 10 s",
        goal=_FULL_TEXT,
        measure=_measure_hanging,
    ),
    "late": LeaseCase(
        text="1 worker, 50 in flight, 20 ms, 0.05 % of 60,000 answers come after 25 s, timeout 30 s",
        goal="the window is as full; time at most 1.1 times (work / window + the 25 s of the last answer)",
        measure=_measure_late,
    ),
    "small-leases": LeaseCase(
        text="`--range-size 10 --concurrency 100`, 1 worker, 100 ms, 6,000 requests",
        goal=_FULL_TEXT,
        measure=_measure_small_leases,
    ),
}
