"""Somebody without a token who does their worst, from one machine, while a run goes on.

Three attackers at once, each a process: bodies that unpack to 1 GiB, 4,000 half-sent heads that are made anew
when they are closed, and malformed requests one after the other. First they are at the coordinator, then at
the delay server that is the target of the run.
"""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from tests.kit.faults.abuse import Attacked, Damage, Site, abuse, run_site
from tests.kit.runs.local_run import wait_until

from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log

CONCURRENCY = 20
_REQUESTS = 100_000_000
"""More than can be sent: the run outlasts the attacks."""
_CALM_S = 5.0
_BEGINS_S = 60.0


class PartResults(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the attacks at one part."""

    name: str
    seconds: float
    probes: int
    worst_probe_ms: float
    memory_mb: float
    """By how much resident memory grew at most."""
    log_mb: float
    """By how much the log grew."""
    calm_rps: float
    """Of the run before the attacks."""
    abused_rps: float
    """Of the run during them."""
    attacks: dict[str, dict[str, int]]
    """What each attacker says that it did."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Both parts."""

    parts: list[PartResults]


def measure(plan: Plan, folder: Path) -> Results:
    """Attack one part after the other."""
    with run_site(folder) as site:
        run = site.api.submit(requests=_REQUESTS, concurrency=CONCURRENCY)
        wait_until(lambda: bool(site.api.summary(run)["accounted"]), _BEGINS_S, "a lease is accounted")
        parts = [
            _attack(site, run, name, attacked, plan.abuse_s)
            for name, attacked in (("coordinator", site.coordinator), ("delay server", site.server))
        ]
    return Results(parts=parts)


def _attack(site: Site, run: str, name: str, attacked: Attacked, seconds: float) -> PartResults:
    calm_rps = _measure_rate(site, run, lambda: time.sleep(_CALM_S))
    damages: list[Damage] = []
    abused_rps = _measure_rate(site, run, lambda: damages.append(abuse(attacked, seconds)))
    [damage] = damages
    results = PartResults(
        name=name,
        seconds=seconds,
        probes=damage.probes,
        worst_probe_ms=round(1000 * damage.worst_probe_s, 1),
        memory_mb=round(damage.memory_mb, 2),
        log_mb=round(damage.log_mb, 4),
        calm_rps=round(calm_rps, 1),
        abused_rps=round(abused_rps, 1),
        attacks=damage.attacks,
    )
    log(
        f"  {name}: probe {results.worst_probe_ms:,.0f} ms at worst, memory {results.memory_mb:+.1f} MB,"
        f" log {results.log_mb:+.4f} MB, run {results.calm_rps:,.0f}/s before, {results.abused_rps:,.0f}/s"
    )
    return results


def _measure_rate(site: Site, run: str, pass_time: Callable[[], object]) -> float:
    """Requests a second that the delay server received meanwhile."""
    began, before = time.monotonic(), _read_served(site, run)
    pass_time()
    return (_read_served(site, run) - before) / (time.monotonic() - began)


def _read_served(site: Site, run: str) -> int:
    return int(site.api.summary(run)["servers"]["served"])
