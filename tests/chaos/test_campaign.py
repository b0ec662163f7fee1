"""A random campaign: runs of all kinds, whose processes are killed, frozen and terminated until time is up.

`./task test:chaos -- --campaign 10m --seed 7` plays the runs of the seeds 7, 8, 9, …; one that fails is the
first of a campaign that begins with its seed.
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from tests.kit.campaign.draw import draw_run
from tests.kit.campaign.play import Play
from tests.kit.loki.loki import Loki, search_loki
from tests.kit.loki.loki_queries import LokiQueries
from tests.kit.runs.local_run import starting_runs

from oku_core.accounting.outcome import Outcome
from oku_core.spec.values.quantity import parse_duration_s

CAMPAIGN, SEED = "--campaign", "--seed"
pytestmark = pytest.mark.timeout(0)
_ENOUGH, _MOST_RATIO = 10, 4.0
"""Over this many runs that sent requests again, the median ratio of `resent_at_most` to their number is at
most this."""
_UNSERVED = (Outcome.NOT_SENT, Outcome.LOST, Outcome.CONNECT_ERROR)


@pytest.fixture
def loki(tmp_path: Path) -> Iterator[LokiQueries | None]:
    """A Loki, if there is one on this machine."""
    if search_loki() is None:
        yield None
        return
    with Loki(tmp_path / "loki") as started:
        yield started


def test_account_served_series_and_loki_agree_whatever_happens(
    pytestconfig: pytest.Config, tmp_path: Path, loki: LokiQueries | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run completes, and what is known of it in four places is the same."""
    seed = pytestconfig.getoption(SEED)
    ratios: list[float] = []
    until = time.monotonic() + parse_duration_s(pytestconfig.getoption(CAMPAIGN))
    while time.monotonic() < until:
        draw, began = draw_run(seed), time.monotonic()
        with capsys.disabled():
            print(f"\nseed {seed}: {draw.describe()}", flush=True)  # noqa: T201  # the story of the campaign
        folder = tmp_path / f"seed-{seed}"
        folder.mkdir()
        with starting_runs(folder) as start:
            summary = Play(draw, start, "data", loki).carry_out()
        served = (summary["servers"] or {}).get("served")
        with capsys.disabled():
            print(  # noqa: T201
                f"  {summary['accounted']:,} accounted, {served:,} served, resent at most"
                f" {summary['resent_at_most']:,}, {time.monotonic() - began:.1f} s",
                flush=True,
            )
        sent = summary["accounted"] - sum(summary["outcomes"][outcome] for outcome in _UNSERVED)
        if served is not None and served > sent:
            ratios.append(summary["resent_at_most"] / (served - sent))
        shutil.rmtree(folder)
        seed += 1
    if len(ratios) >= _ENOUGH:
        assert median(ratios) <= _MOST_RATIO, f"resent_at_most by what was sent again: {sorted(ratios)}"
