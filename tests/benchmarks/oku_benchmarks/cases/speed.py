"""This checkout and another one take turns at nginx, and wrk beside them: has anything become slower?

Both have a stack of their own that stays up, so that a turn is one run by one worker. Rates and processor
time are taken between 20 % and 90 % of a turn's requests, as nginx counts them.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from oku_benchmarks.cases.peer_contest import check_sent
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.observer import Observer, cut_window
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.real_stack import RealStack, open_stack
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.rivals import RIVALS, Effort
from oku_benchmarks.turns.turn import Stage

NOW, BEFORE, WRK = "now", "before", "wrk"
ENGINES = ("httptools", "aiohttp")
_EXPECTED_RPS = {"httptools": 30_000, "aiohttp": 5_000}
_WORKER = "worker-1"
_BEGIN, _END = 0.2, 0.9
_TIMEOUT_S = 120.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn."""

    number: int
    contestant: str
    engine: str
    """Empty for wrk."""
    connections: int
    rate_rps: float
    cpu_us: float
    """Of one request, of the worker's or the client's process."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, in the order in which they were taken."""

    turn_s: int
    rounds: list[Round]


def measure(plan: Plan, folder: Path) -> Results:
    """Let both take their turns, engine by engine."""
    if not plan.baseline:
        raise BenchmarkError("needs --baseline: a checkout to compare this one with")
    checkouts = {BEFORE: Checkout(Path(plan.baseline)), NOW: Checkout()}
    with Nginx(folder) as nginx, ExitStack() as exits:
        stacks = {
            name: exits.enter_context(open_stack(checkout, folder / name))
            for name, checkout in checkouts.items()
        }
        for stack in stacks.values():
            stack.start_coordinator()
            stack.start_workers(_WORKER)
        contest = _Contest(nginx, stacks, folder, plan.peer_turn_s)
        rounds = [
            result
            for connections in plan.concurrencies
            for number in range(1, plan.rounds + 1)
            for result in contest.measure_round(number, connections)
        ]
    return Results(turn_s=plan.peer_turn_s, rounds=rounds)


class _Contest:
    def __init__(self, nginx: Nginx, stacks: Mapping[str, RealStack], folder: Path, turn_s: int) -> None:
        self._nginx, self._stacks, self._folder, self._turn_s = nginx, stacks, folder, turn_s
        self._turns = 0

    def measure_round(self, number: int, connections: int) -> list[Round]:
        """Everybody once; who begins changes from round to round."""
        names = (BEFORE, NOW) if number % 2 else (NOW, BEFORE)
        rounds = [self._play(name, engine, number, connections) for engine in ENGINES for name in names]
        return [*rounds, self._play_wrk(number, connections)]

    def _play(self, name: str, engine: str, number: int, connections: int) -> Round:
        stack, requests = self._stacks[name], _EXPECTED_RPS[engine] * self._turn_s
        self._turns += 1
        observer = Observer(self._nginx, lambda: {_WORKER: stack.find_pid(_WORKER)})
        command = stack.submit(
            f"turn-{self._turns}", "run", "--url", self._nginx.url, "--requests", str(requests),
            "--concurrency", str(connections), "--engine", engine,
        )  # fmt: skip
        observer.watch(command.child, _TIMEOUT_S)
        check_sent(f"{name}, {engine}", observer.count_sent(), requests)
        window = cut_window(observer.samples, _BEGIN * requests, _END * requests)
        return _log(
            Round(
                number=number,
                contestant=name,
                engine=engine,
                connections=connections,
                rate_rps=round(window.rate_rps, 1),
                cpu_us=round(window.measure_cpu_s(_WORKER) / window.sent * 1e6, 2),
            )
        )

    def _play_wrk(self, number: int, connections: int) -> Round:
        rival = RIVALS[WRK]
        program = rival.find()
        if program is None:
            raise BenchmarkError(rival.describe_missing())

        def build(account: Path) -> list[str]:
            effort = Effort(
                url=self._nginx.url,
                connections=connections,
                seconds=self._turn_s,
                requests=0,
                account=str(account),
            )
            return list(rival.build(program, effort))

        turn = Stage(self._nginx, self._folder).play("client", build)
        window = cut_window(turn.samples, _BEGIN * turn.sent, _END * turn.sent)
        return _log(
            Round(
                number=number,
                contestant=WRK,
                engine="",
                connections=connections,
                rate_rps=round(window.rate_rps, 1),
                cpu_us=round(window.measure_cpu_s("client") / window.sent * 1e6, 2),
            )
        )


def _log(entry: Round) -> Round:
    name = ", ".join(filter(None, (entry.contestant, entry.engine)))
    log(
        f"  round {entry.number}, {entry.connections} connections, {name}: {entry.rate_rps:,.0f}/s,"
        f" {entry.cpu_us:.1f} µs of processor time each"
    )
    return entry


def pick(results: Results, contestant: str, engine: str, connections: int) -> list[Round]:
    """The turns of a contestant, round by round."""
    return [
        entry
        for entry in results.rounds
        if (entry.contestant, entry.engine, entry.connections) == (contestant, engine, connections)
    ]
