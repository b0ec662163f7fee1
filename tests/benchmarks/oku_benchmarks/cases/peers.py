"""One Oku worker and other load generators take turns at nginx, whose answer is always the same."""

from pathlib import Path

import msgspec

from oku_benchmarks.cases.peer_contest import OKU, OKU_AIOHTTP, TARGET, PeerContest, Round, find_missing
from oku_benchmarks.plan import Plan
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.rivals import RIVALS
from oku_benchmarks.turns.turn import Stage


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, in the order in which they were taken."""

    turn_s: int
    rounds: list[Round]
    missing: dict[str, str]
    """Contestants that are not there, and why."""


def measure(plan: Plan, folder: Path) -> Results:
    """Let all contestants take their turns."""
    missing = find_missing(RIVALS)
    with Nginx(folder) as nginx:
        contest = PeerContest(Stage(nginx, folder, beside={TARGET: nginx.pid}), plan.peer_turn_s)
        names = [OKU, *(name for name in RIVALS if name not in missing), OKU_AIOHTTP]
        rounds = [
            contest.measure_round(name, connections, number)
            for connections in plan.concurrencies
            for number in range(1, plan.rounds + 1)
            for name in names
        ]
    return Results(turn_s=plan.peer_turn_s, rounds=rounds, missing=missing)
