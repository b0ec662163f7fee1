"""Many seeds, all faults, all laws; each seed in a process whose sets are in the same order each time."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def _simulate(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=_ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    return done.stdout


def test_runs_complete_when_nothing_fails() -> None:
    """Every seed without faults ends with runs that are complete."""
    said = _simulate("--seeds", "40", "--faults", "")
    assert re.search(r"40 seeds, 0 faults, .*runs: \d+ completed$", said, re.MULTILINE)


def test_runs_over_time_complete_when_nothing_fails() -> None:
    """And keep to their due times, their ends and their highest rates."""
    said = _simulate("--seeds", "20", "--faults", "", "--loads", "rate,time,paced")
    assert re.search(r"20 seeds, 0 faults, .*runs: \d+ completed$", said, re.MULTILINE)


@pytest.mark.timeout(600)
def test_the_laws_hold_through_ten_thousand_faults() -> None:
    """Of all kinds, at any await and in any transaction."""
    said = _simulate("--seeds", "1000", "--at-least-faults", "10000")
    faults = re.search(r"([\d,]+) faults", said)
    assert faults is not None
    assert int(faults[1].replace(",", "")) >= 10_000


def test_what_may_have_been_resent_is_at_most_four_times_what_was() -> None:
    """As the median of each mode, of runs with a rate and of closed ones."""
    faults = ("--faults", "kill-worker,freeze-worker,kill-host,kill-coordinator", "--most-ratio", "4")
    for loads, seeds, modes in (("rate", "25", {"stages", "user-code"}), ("number,paced", "15", {"closed"})):
        said = _simulate("--loads", loads, "--seeds", seeds, "--first", "100", *faults)
        assert modes <= set(re.findall(r"([a-z-]+) [\d.]+ \(", said.splitlines()[-1])), said


def test_a_seed_has_one_history() -> None:
    """Whoever plays it, it ends with the same story."""
    for seed in range(5, 9):
        stories = {_simulate("--seed", str(seed)).splitlines()[0] for _ in range(2)}
        assert len(stories) == 1
        assert "story" in stories.pop()
