from itertools import pairwise

import pytest

from oku_cli.follow.outage import PATIENCE_S, Outage


class Coordinator:
    """A coordinator that may answer, with the time and the lines about it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.said: list[str] = []
        self.silence = Outage(self.said.append, "it answers again", clock=lambda: self.now_s)

    def stay_silent(self, for_s: float, reason: str = "no answer") -> list[float]:
        """Ask it for this long with the pauses that `note` returns, and return these."""
        pauses: list[float] = []
        until_s = self.now_s + for_s
        while self.now_s < until_s:
            pauses.append(self.silence.report(reason))
            self.now_s += pauses[-1]
        return pauses


def test_pauses_grow_up_to_five_seconds_and_begin_anew() -> None:
    """A cluster that is away for hours is not asked five times a second."""
    coordinator = Coordinator()
    pauses = coordinator.stay_silent(600.0)
    assert all(earlier <= later <= 5.0 for earlier, later in pairwise(pauses))
    assert pauses[-1] == 5.0
    assert len(pauses) < 200
    coordinator.silence.end()
    assert coordinator.silence.report("no answer") == 0.2


def test_a_silence_is_spoken_of_when_it_lasts() -> None:
    """A coordinator that the local stack starts again is back within two seconds."""
    coordinator = Coordinator()
    assert coordinator.stay_silent(2.0) == pytest.approx([0.2] * 10)
    coordinator.stay_silent(PATIENCE_S - 2.5)
    coordinator.silence.end()
    assert coordinator.said == []
    # Each reason is said once.
    coordinator = Coordinator()
    coordinator.stay_silent(PATIENCE_S + 1)
    assert coordinator.said == ["no answer; trying again"]
    coordinator.stay_silent(60, "refused")
    coordinator.stay_silent(60)
    coordinator.silence.end()
    coordinator.silence.end()
    assert coordinator.said[1:] == ["refused; trying again", "it answers again"]
    coordinator.stay_silent(PATIENCE_S + 1)
    assert coordinator.said[3:] == ["no answer; trying again"]
    # A silence begins with the last answer.
    coordinator = Coordinator()
    coordinator.now_s += 30
    assert coordinator.silence.report("timeout") == 3.0
    assert coordinator.said == ["timeout; trying again"]
