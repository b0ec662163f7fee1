"""Who carries out the iterations of the benchmark `user-code` beside Oku, and how each is told to."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oku_benchmarks.install import describe_missing, find_program
from oku_benchmarks.turns.turn import CONTESTANTS

SCRIPTS = CONTESTANTS / "user_code"
ONE_REQUEST, TWO_REQUESTS = SCRIPTS / "one_request_locustfile.py", SCRIPTS / "two_requests_locustfile.py"


@dataclass(frozen=True, kw_only=True)
class Task:
    """One turn: both its time and the iterations that fit into it are given, each takes what it understands.

    Attributes:
        host: what comes before the paths of its requests.
        users: iterations at a time.
        seconds: how long it takes.
        iterations: how many that makes.
    """

    host: str
    users: int
    seconds: int
    iterations: int


@dataclass(frozen=True, kw_only=True)
class UserCodeRival:
    """One of them.

    Attributes:
        steps: requests of an iteration.
        build: its command, given its program and a task.
        program: its name; empty for this Python.
        counts: whether it carries out a number of iterations, and not as many as the time allows.
        expected_rate: iterations per second, until its first turn has said.
    """

    steps: int
    build: Callable[[str, Task], Sequence[str]]
    program: str = ""
    counts: bool = False
    expected_rate: float = 2_000.0

    def find(self) -> str | None:
        """The path of its program; None when it is missing."""
        return find_program(self.program) if self.program else sys.executable

    def describe_missing(self) -> str:
        """Why it is left out."""
        return describe_missing(self.program)


def _locust(file: Path, *flags: str) -> Callable[[str, Task], list[str]]:
    return lambda program, task: [
        program, "-m", "locust", "--locustfile", str(file), "--headless", "--only-summary",
        "--users", str(task.users), "--spawn-rate", str(task.users), "--run-time", f"{task.seconds}s",
        "--host", task.host, *flags,
    ]  # fmt: skip


def _loop(program: str, task: Task) -> list[str]:
    script = str(SCRIPTS / "two_requests_loop.py")
    return [program, script, task.host, str(task.iterations), str(task.users)]


def _k6(program: str, task: Task) -> list[str]:
    return [
        program, "run", "--quiet", "--no-usage-report", "--no-summary", "--address", "",
        "--vus", str(task.users), "--duration", f"{task.seconds}s", "-e", f"HOST={task.host}",
        str(SCRIPTS / "two_requests_k6.js"),
    ]  # fmt: skip


LOCUST, LOCUST_WORKER = "locust", "locust, master and worker"
LOCUST_TWO, LOOP, K6 = "locust, two requests", "bare loop, two requests", "k6, two requests"
USER_CODE_RIVALS: Mapping[str, UserCodeRival] = {
    LOCUST: UserCodeRival(steps=1, build=_locust(ONE_REQUEST)),
    LOCUST_WORKER: UserCodeRival(
        steps=1, build=_locust(ONE_REQUEST, "--processes", "1", "--master-bind-host", "127.0.0.1")
    ),
    LOCUST_TWO: UserCodeRival(steps=2, build=_locust(TWO_REQUESTS)),
    LOOP: UserCodeRival(steps=2, build=_loop, counts=True),
    K6: UserCodeRival(steps=2, build=_k6, program="k6"),
}
