"""Callers without a token who do their worst, at real processes, while a run goes on."""

from pathlib import Path

import pytest
from tests.kit.abuse import abuse, run_site
from tests.kit.local_run import wait_until

_ATTACK_S = 6.0
_MOST_MB = 10.0
_SLOWEST_PROBE_S = 4.0
"""The benchmark `abuse` measures it alone and wants 1 s; machines that run tests do other things, too."""


@pytest.mark.parametrize("part", ["coordinator", "server"])
def test_a_run_goes_on_under_abuse(tmp_path: Path, part: str) -> None:
    """Packed bodies, half-sent heads, malformed requests: memory and log stay small, the probe answers."""
    with run_site(tmp_path) as site:
        run = site.api.submit(requests=1_000_000, url=site.target, concurrency=20)
        wait_until(lambda: bool(site.api.summary(run)["accounted"]), 30, "a lease is accounted")
        before = site.api.summary(run)["accounted"]
        damage = abuse(getattr(site, part), _ATTACK_S)
        wait_until(lambda: site.api.summary(run)["accounted"] > before, 30, "another lease is accounted")
        assert site.api.summary(run)["state"] == "running"
    assert all(sum(done.values()) for done in damage.attacks.values())
    assert damage.memory_mb < _MOST_MB
    assert damage.log_mb < _MOST_MB
    assert damage.worst_probe_s < _SLOWEST_PROBE_S
