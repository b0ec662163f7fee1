"""Iterations of user code: Oku beside Locust with the same file, a bare loop and k6; and what kills leave.

Requests are counted by nginx, and the rate of each is that between 20 % and 90 % of its own requests.
Processor time is that of all processes of a client in the same window: of Oku's worker and its host, of
Locust's master and worker.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from oku_benchmarks.cases.lease_cases.lease_case import Site, open_site
from oku_benchmarks.cases.peer_contest import check_sent
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.observer import Window, cut_window
from oku_benchmarks.measuring.vitals import find_children
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.counting_server import Behaviour
from oku_benchmarks.stacks.counting_target import count_twice
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.oku_turn import WORKER, Load, open_data_dir, play_oku
from oku_benchmarks.turns.turn import Stage, Turn
from oku_benchmarks.turns.user_code_rivals import (
    ONE_REQUEST,
    SCRIPTS,
    TWO_REQUESTS,
    USER_CODE_RIVALS,
    Task,
    UserCodeRival,
)

OKU_LOCUST, OKU_LOCUST_TWO = "oku, locustfile", "oku, locustfile, two requests"
OKU_SCENARIO = "oku, scenario, two requests"
OKU = {
    OKU_LOCUST: ONE_REQUEST,
    OKU_LOCUST_TWO: TWO_REQUESTS,
    OKU_SCENARIO: SCRIPTS / "two_requests_scenario.py",
}
STEPS = {OKU_LOCUST: 1, OKU_LOCUST_TWO: 2, OKU_SCENARIO: 2} | {
    name: rival.steps for name, rival in USER_CODE_RIVALS.items()
}
"""Requests of an iteration."""
USERS = 100
KILLS = 10
_EXPECTED_RATE = 2_000.0
_BEGIN, _END = 0.2, 0.9
_CLIENT = "client"
_WORKERS = ("worker-1", "worker-2")
_KILLED_USERS, _KILLED_DELAY = 50, "5ms..50ms"
_TIMEOUT_S, _HOST_S = 600.0, 30.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one contestant.

    Attributes:
        number: of the round.
        contestant: its name.
        rate: iterations per second.
        cpu_us: processor time of an iteration, all processes of the client together.
        cpu_share: of one core.
    """

    number: int
    contestant: str
    rate: float
    cpu_us: float
    cpu_share: float


class Kills(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to whose hosts and workers were killed.

    Attributes:
        iterations: of the run.
        accounted: of them.
        twice: requests that the target received again.
        resent_at_most: what the run says of that.
    """

    iterations: int
    accounted: int
    twice: int
    resent_at_most: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, in the order in which they were taken, and the run with kills.

    Attributes:
        turn_s: how long a turn is.
        rounds: the turns.
        missing: contestants that are not there, and why.
        kills: the run with kills.
    """

    turn_s: int
    rounds: list[Round]
    missing: dict[str, str]
    kills: Kills


def measure(plan: Plan, folder: Path) -> Results:
    """Let all contestants take their turns, then kill."""
    rivals = USER_CODE_RIVALS
    missing = {name: rival.describe_missing() for name, rival in rivals.items() if rival.find() is None}
    for reason in missing.values():
        log(f"  left out: {reason}")
    names = [name for name in STEPS if name not in missing]
    with Nginx(folder) as nginx:
        contest = _Contest(Stage(nginx, folder), plan.user_code_turn_s)
        rounds = [
            contest.measure_round(name, number)
            for number in range(1, plan.rounds + 1)
            for name in (names if number % 2 else reversed(names))
        ]
    kills = _measure_kills(folder / "kills", plan.user_code_iterations)
    return Results(turn_s=plan.user_code_turn_s, rounds=rounds, missing=missing, kills=kills)


class _Contest:
    def __init__(self, stage: Stage, turn_s: int) -> None:
        self._stage = stage
        self._turn_s = turn_s
        self._expected_rate = dict.fromkeys(STEPS, _EXPECTED_RATE)

    def measure_round(self, name: str, number: int) -> Round:
        iterations = int(self._expected_rate[name] * self._turn_s)
        task = Task(
            host=self._stage.target.url.removesuffix("/{i}"),
            users=USERS,
            seconds=self._turn_s,
            iterations=iterations,
        )
        if name in OKU:
            turn, process = self._play_oku(name, task), WORKER
        else:
            turn, process = self._play_rival(USER_CODE_RIVALS[name], task), _CLIENT
        window = cut_window(turn.samples, _BEGIN * turn.sent, _END * turn.sent)
        cpu_s, ended = _measure_client_cpu_s(window, process), window.sent / STEPS[name]
        result = Round(
            number=number,
            contestant=name,
            rate=round(ended / window.length_s, 1),
            cpu_us=round(cpu_s / ended * 1e6, 2),
            cpu_share=round(cpu_s / window.length_s, 3),
        )
        self._expected_rate[name] = result.rate
        log(
            f"  round {number}, {name}: {result.rate:,.0f} iterations/s,"
            f" {result.cpu_us:.1f} µs of processor time each"
        )
        return result

    def _play_oku(self, name: str, task: Task) -> Turn:
        load = Load(requests=task.iterations, concurrency=task.users, scenario=str(OKU[name]))
        with open_data_dir(self._stage.folder) as data_dir:
            turn = play_oku(self._stage, data_dir, load, is_shown=True).turn
        check_sent(name, turn.sent, task.iterations * STEPS[name])
        return turn

    def _play_rival(self, rival: UserCodeRival, task: Task) -> Turn:
        program = rival.find()
        assert program is not None
        turn = self._stage.play(_CLIENT, lambda _: rival.build(program, task))
        if rival.counts:
            check_sent(_CLIENT, turn.sent, task.iterations * rival.steps)
        return turn


def _measure_client_cpu_s(window: Window, process: str) -> float:
    """Of a process and of those that it has started."""
    names = [
        name
        for name in window.begin.vitals.keys() & window.end.vitals.keys()
        if name == process or name.startswith(f"{process}, ")
    ]
    return sum(window.measure_cpu_s(name) for name in names)


def _measure_kills(folder: Path, iterations: int) -> Kills:
    """Hosts and workers are killed in turn, evenly over a run and at any moment of a lease."""
    folder.mkdir()
    chance = random.Random(iterations)
    behaviour = Behaviour(indices=iterations, delay=_KILLED_DELAY)
    with open_site(Checkout(), folder, behaviour, ("--allow-user-code",)) as site:
        site.stack.start_workers(*_WORKERS)
        command = site.stack.submit(
            "run", "run", str(SCRIPTS / "counted_scenario.py"), "--host",
            site.target.url.removesuffix("/{i}"), "--iterations", str(iterations),
            "--concurrency", str(_KILLED_USERS), "--workers", str(len(_WORKERS)),
        )  # fmt: skip
        for number in range(KILLS):
            _wait_for_distinct(site, iterations * (number + 1) // (KILLS + 2))
            time.sleep(chance.uniform(0, 0.5))
            victim = chance.choice(_WORKERS)
            if number % 2:
                site.stack.kill(victim)
                site.stack.start_workers(victim)
            else:
                _kill_host(site, victim)
        account = site.finish(command, _TIMEOUT_S)
        kills = Kills(
            iterations=iterations,
            accounted=account.accounted,
            twice=count_twice(site.target.read_last()),
            resent_at_most=account.resent_at_most,
        )
    log(
        f"  {KILLS} kills: {kills.accounted:,} of {iterations:,} accounted, {kills.twice:,} requests sent"
        f" twice, {kills.resent_at_most:,} said"
    )
    return kills


def _kill_host(site: Site, worker: str) -> None:
    pid = site.stack.find_pid(worker)
    deadline = time.monotonic() + _HOST_S
    while not (hosts := find_children(pid)):
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{worker} has had no host for {_HOST_S:.0f} s: the run may have ended")
        time.sleep(0.05)
    for host in hosts:
        site.stack.kill_process(host)


def _wait_for_distinct(site: Site, iterations: int) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while site.target.read_last().distinct < iterations:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"the run has come no further within {_TIMEOUT_S:.0f} s")
        time.sleep(0.05)


def pick(results: Results, name: str, figure: Callable[[Round], float]) -> list[float]:
    """One figure of a contestant, round by round."""
    ordered = sorted(results.rounds, key=lambda entry: entry.number)
    return [figure(entry) for entry in ordered if entry.contestant == name]
