"""Cases in which processes die: what is sent twice, what is said of that, and whether the load goes on."""

import random
import time
from pathlib import Path
from statistics import median

from oku_benchmarks.cases.lease_cases.lease_case import Finding, LeaseCase, Site, open_site
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.counting_server import Behaviour
from oku_benchmarks.stacks.counting_target import count_twice

_WINDOW = 50
_WORKERS = ("worker-1", "worker-2")
_DELAY = "5ms..50ms"
_RATIO_GOAL = 4.0
_SAID_S, _SENT_S = 12, 6
"""One killed worker may cost its window and so many seconds of its work: what is said, and what is really
sent twice."""
_KILLS = (10, 25, 60)
_AWAY_S = 8.0
_GOES_ON_GOAL = 0.9


def _measure_kills(checkout: Checkout, folder: Path) -> Finding:
    texts, ratios, is_never_below = [], [], True
    for kills in _KILLS:
        place = folder / str(kills)
        place.mkdir()
        said, really = _play_kills(checkout, place, kills)
        is_never_below &= said >= really
        ratios.append(said / max(1, really))
        texts.append(f"{kills} kills: {said:,} said, {really:,} sent twice")
    return Finding(
        text=f"{'; '.join(texts)}; median {median(ratios):.1f} times",
        is_met=is_never_below and median(ratios) <= _RATIO_GOAL,
    )


def _play_kills(checkout: Checkout, folder: Path, kills: int) -> tuple[int, int]:
    """What a run of 100,000 says of requests sent twice, and how many were."""
    requests, chance = 100_000, random.Random(kills)
    with open_site(checkout, folder, Behaviour(indices=requests, delay=_DELAY)) as site:
        site.stack.start_workers(*_WORKERS)
        command = site.start("run", requests, _WINDOW, "--workers", "2")
        for number in range(kills):
            # Evenly over the run, as far as the target has seen it, and at any moment of a lease.
            _wait_for_distinct(site, requests * (number + 1) // (kills + 2))
            time.sleep(chance.uniform(0, 0.5))
            victim = chance.choice(_WORKERS)
            site.stack.kill(victim)
            site.stack.start_workers(victim)
        account = site.finish(command, 600)
        return account.resent_at_most, count_twice(site.target.read_last())


def _measure_one_kill(checkout: Checkout, folder: Path) -> Finding:
    requests = 120_000
    with open_site(checkout, folder, Behaviour(indices=requests, delay="100ms")) as site:
        site.stack.start_workers(*_WORKERS)
        command = site.start("run", requests, 100, "--workers", "2")
        _wait_for_distinct(site, requests // 2)
        site.stack.kill("worker-1")
        site.stack.start_workers("worker-1")
        account = site.finish(command, 600)
        really = count_twice(site.target.read_last())
    rate_rps = 100 / 0.1
    said_most, sent_most = (100 + length_s * rate_rps for length_s in (_SAID_S, _SENT_S))
    return Finding(
        text=(
            f"{account.resent_at_most:,} said (at most {said_most:,.0f}),"
            f" {really:,} sent twice (at most {sent_most:,.0f})"
        ),
        is_met=really <= account.resent_at_most <= said_most and really <= sent_most,
    )


def _measure_away(checkout: Checkout, folder: Path) -> Finding:
    requests = 60_000
    with open_site(checkout, folder, Behaviour(indices=requests, delay="100ms")) as site:
        site.stack.start_workers(*_WORKERS)
        command = site.start("run", requests, 100, "--workers", "2")
        _wait_for_distinct(site, requests // 3)
        before = site.target.read_last()
        site.stack.kill("coordinator")
        time.sleep(_AWAY_S)
        after = site.target.read_last()
        site.stack.start_coordinator()
        account = site.finish(command, 600)
    rate_rps, usual_rps = (after.received - before.received) / (after.at - before.at), 2 * 100 / 0.1
    return Finding(
        text=(
            f"{rate_rps:,.0f}/s of {usual_rps:,.0f}/s meanwhile;"
            f" {account.resent_at_most:,} said to be sent twice"
        ),
        is_met=rate_rps >= _GOES_ON_GOAL * usual_rps and account.resent_at_most == 0,
    )


def _wait_for_distinct(site: Site, indices: int) -> None:
    while site.target.read_last().distinct < indices:
        time.sleep(0.05)


DEATHS = {
    "kills": LeaseCase(
        text="10, 25 and 60 workers are killed in a run of 100,000 with 2 workers, 50 in flight, 5 to 50 ms",
        goal="`resent_at_most` is never below what was sent twice; median at most 4 times",
        measure=_measure_kills,
    ),
    "one-kill": LeaseCase(
        text="one of 2 workers at 1,000/s with 100 in flight is killed",
        goal="`resent_at_most` at most its window and 12 s of its work; sent twice at most it and 6 s",
        measure=_measure_one_kill,
    ),
    "coordinator-away": LeaseCase(
        text="the coordinator is killed and comes back after 8 s; 2 workers at 1,000/s",
        goal="the load goes on (at least 90 %), and nothing is said to be sent twice",
        measure=_measure_away,
    ),
}
