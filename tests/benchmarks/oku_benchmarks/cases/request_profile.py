"""Where the processor time of requests goes, in turns of their own that count for nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from oku_benchmarks.cases.peer_contest import CLIENT, OKU, PeerContest
from oku_benchmarks.install import find_program
from oku_benchmarks.measuring.profile import Profiler
from oku_benchmarks.progress import log
from oku_benchmarks.turns.oku_turn import WORKER

_AFTER = 20_000
"""Requests, when it begins."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Where the processor time of a request goes.

    Attributes:
        kind: of the answers.
        contestant: whose process it is.
        cpu_us: of one request, while it was profiled.
        shares: of that, by part.
    """

    kind: str
    contestant: str
    cpu_us: float
    shares: dict[str, float]

    def measure_us(self, part: str) -> float:
        """Processor time of a request in one part."""
        return self.shares.get(part, 0.0) * self.cpu_us


def measure_profiles(
    contests: Mapping[str, PeerContest], names: Sequence[str], connections: int, folder: Path, for_s: float
) -> list[Profile]:
    """Let contestants take a turn at each kind of answers, and profile that.

    Args:
        contests: by kind of answers.
        names: of the contestants; `oku` stands for its worker.
        connections: of each.
        folder: for the samples.
        for_s: how long each is profiled.

    Returns:
        Those that could be taken; none without `perf`.
    """
    if find_program("perf") is None:
        log("  no profile: perf is not installed")
        return []
    profiles = []
    for kind, contest in contests.items():
        for name in names:
            profiler = Profiler(WORKER if name == OKU else CLIENT, _AFTER, for_s, folder)
            played = contest.play(name, connections, 0, profiler.look)
            if shares := profiler.read_shares():
                rounded = {part: round(share, 4) for part, share in shares.items()}
                profiles.append(Profile(kind=kind, contestant=name, cpu_us=played.cpu_us, shares=rounded))
        log(f"  profiled: {kind}")
    return profiles
