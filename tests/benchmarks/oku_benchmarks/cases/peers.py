"""One Oku worker and other load generators take turns at nginx: as many connections, the same time.

Requests are counted by nginx itself, and the rate of each is that between 20 % and 90 % of its own requests:
no start-up, no opening of connections and no winding down is in it. Processor time is that of the client's
process in the same window.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.observer import cut_window
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.oku_turn import AIOHTTP, HTTPTOOLS, WORKER, Load, open_data_dir, play_oku
from oku_benchmarks.turns.rivals import RIVALS, Effort, Rival
from oku_benchmarks.turns.turn import Stage, Turn

OKU, OKU_AIOHTTP = "oku", "oku, aiohttp"
_ENGINES = {OKU: HTTPTOOLS, OKU_AIOHTTP: AIOHTTP}
_EXPECTED_RPS = {OKU: 40_000.0, OKU_AIOHTTP: 12_000.0}
"""Until the first turn has said."""
_BEGIN, _END = 0.2, 0.9


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one contestant."""

    number: int
    contestant: str
    connections: int
    requests: int
    """That reached nginx."""
    rate_rps: float
    cpu_us: float
    """Of one request."""
    cpu_share: float
    """Of one core, all threads of the client's process together."""
    nginx_share: float
    """Of one core, for nginx."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, in the order in which they were taken."""

    turn_s: int
    rounds: list[Round]
    missing: dict[str, str]
    """Contestants that are not there, and why."""


def measure(plan: Plan, folder: Path) -> Results:
    """Let all contestants take their turns."""
    missing = {name: rival.describe_missing() for name, rival in RIVALS.items() if rival.find() is None}
    for reason in sorted(set(missing.values())):
        log(f"  left out: {reason}")
    with Nginx(folder) as nginx:
        contest = _Contest(Stage(nginx, folder, beside={"nginx": nginx.pid}), plan.peer_turn_s)
        names = [OKU, *(name for name in RIVALS if name not in missing), OKU_AIOHTTP]
        rounds = [
            contest.measure_round(name, connections, number)
            for connections in plan.concurrencies
            for number in range(1, plan.rounds + 1)
            for name in names
        ]
    return Results(turn_s=plan.peer_turn_s, rounds=rounds, missing=missing)


class _Contest:
    def __init__(self, stage: Stage, turn_s: int) -> None:
        self._stage = stage
        self._turn_s = turn_s
        self._expected_rps = _EXPECTED_RPS | {name: rival.expected_rps for name, rival in RIVALS.items()}

    def measure_round(self, name: str, connections: int, number: int) -> Round:
        requests = int(self._expected_rps[name] * self._turn_s)
        if name in _ENGINES:
            process, turn = WORKER, self._play_oku(_ENGINES[name], connections, requests)
        else:
            process, turn = "client", self._play_rival(RIVALS[name], connections, requests)
        window = cut_window(turn.samples, _BEGIN * turn.sent, _END * turn.sent)
        cpu_s = window.measure_cpu_s(process)
        result = Round(
            number=number,
            contestant=name,
            connections=connections,
            requests=turn.sent,
            rate_rps=round(window.rate_rps, 1),
            cpu_us=round(cpu_s / window.sent * 1e6, 2),
            cpu_share=round(cpu_s / window.length_s, 3),
            nginx_share=round(window.measure_cpu_s("nginx") / window.length_s, 3),
        )
        self._expected_rps[name] = window.rate_rps
        log(
            f"  round {number}, {connections} connections, {name}: {result.rate_rps:,.0f}/s,"
            f" {result.cpu_us:.1f} µs of processor time each"
        )
        return result

    def _play_oku(self, engine: str, connections: int, requests: int) -> Turn:
        load = Load(requests=requests, concurrency=connections, engine=engine)
        with open_data_dir(self._stage.folder) as data_dir:
            turn = play_oku(self._stage, data_dir, load, is_shown=True).turn
        check_sent(engine, turn.sent, requests)
        return turn

    def _play_rival(self, rival: Rival, connections: int, requests: int) -> Turn:
        program = rival.find()
        assert program is not None

        def build(account: Path) -> list[str]:
            effort = Effort(
                url=self._stage.target.url,
                connections=connections,
                seconds=self._turn_s,
                requests=requests,
                account=str(account),
            )
            return list(rival.build(program, effort))

        turn = self._stage.play("client", build)
        if rival.is_script:
            check_sent(rival.program, turn.sent, requests)
        return turn


def check_sent(name: str, sent: int, requests: int) -> None:
    """`BenchmarkError` unless a contestant has sent what it was asked for."""
    if sent != requests:
        raise BenchmarkError(f"{name} sent {sent} of {requests} requests")


def pick(results: Results, name: str, connections: int, figure: Callable[[Round], float]) -> list[float]:
    """One figure of a contestant, round by round."""
    return [
        figure(entry)
        for entry in results.rounds
        if entry.contestant == name and entry.connections == connections
    ]
