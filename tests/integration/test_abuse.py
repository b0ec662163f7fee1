"""Callers without a token who do their worst, at real processes, while a run goes on."""

from pathlib import Path

import pytest
from tests.kit.faults.abuse import abuse, run_site
from tests.kit.runs.local_run import wait_until

pytestmark = pytest.mark.alone

_ATTACK_S = 6.0
_MOST_MEMORY_MB = 10.0
_FEWEST_ANSWERED = 20
"""Malformed requests: while packed bodies come, and on any machine."""
_MOST_LOG_MB = 0.01
"""A traceback for each of so few would be more."""


@pytest.mark.parametrize(("part", "most_files"), [("coordinator", 400), ("server", 1500)])
def test_a_run_goes_on_under_abuse(
    tmp_path: Path, part: str, most_files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed bodies, half-sent heads and malformed requests cost few files and little memory and log, and the
    probe is answered. How soon it is answered is measured by the benchmark `abuse`: machines that run tests
    do other things, too.
    """
    monkeypatch.setenv("OKU_DEBUGGABLE", "yes")  # their open files are counted
    with run_site(tmp_path) as site:
        run = site.api.submit(requests=1_000_000, url=site.target, concurrency=20)
        wait_until(lambda: bool(site.api.summary(run)["accounted"]), 30, "a lease is accounted")
        before = site.api.summary(run)["accounted"]
        damage = abuse(getattr(site, part), _ATTACK_S)
        wait_until(lambda: site.api.summary(run)["accounted"] > before, 30, "another lease is accounted")
        assert site.api.summary(run)["state"] == "running"
    assert all(sum(done.values()) for done in damage.attacks.values())
    assert damage.attacks["malformed"]["answered"] >= _FEWEST_ANSWERED
    assert damage.memory_mb < _MOST_MEMORY_MB
    assert damage.log_mb < _MOST_LOG_MB
    assert damage.most_files < most_files
