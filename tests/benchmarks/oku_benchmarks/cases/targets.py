"""What several targets, data and a check of bodies cost a request, beside one target without either.

Each contestant is the httptools engine alone, in a process of its own; they take turns at a target that
answers at once. A check is paid for by answers that differ from each other: those that are the same are
judged once.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.answer_server import VARYING, AnswerServer

ONE, TEN, DATA, ONE_VARYING, CHECK = "one", "ten", "ten with data", "one, answers differ", "body check"
CONNECTIONS = 100
_TURN_RPS = 10_000
"""So many requests are sent for each second of a turn, which so takes about half as long."""
_TIMEOUT_S = 120.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn."""

    number: int
    contestant: str
    cpu_us: float
    """Of one request."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, in the order in which they were taken."""

    requests: int
    rounds: list[Round]


def measure(plan: Plan, folder: Path) -> Results:
    """Let each take its turns; who begins changes from round to round."""
    requests = plan.peer_turn_s * _TURN_RPS
    data = folder / "skus.csv"
    data.write_text("sku,price,note\n" + "".join(f"SKU-{row:06},{row},a note\n" for row in range(requests)))
    rounds = []
    with AnswerServer(folder) as target:
        specs = _build_specs(target.url.removesuffix("/{i}"))
        for number in range(1, plan.rounds + 1):
            for name in specs if number % 2 else reversed(specs):
                cpu_us = _play(specs[name], requests, data if name == DATA else None)
                log(f"  round {number}, {name}: {cpu_us:.1f} µs of processor time each")
                rounds.append(Round(number=number, contestant=name, cpu_us=cpu_us))
    return Results(requests=requests, rounds=rounds)


def _build_specs(base: str) -> dict[str, Mapping[str, object]]:
    every = {"engine": "httptools", "concurrency": CONNECTIONS}
    ten = [f"/{number}" for number in range(10)]
    return {
        ONE: {"url": f"{base}/{{i}}", **every},
        TEN: {
            "base-url": base,
            "targets": [{"name": path[1:], "url": f"{path}/{{i}}"} for path in ten],
            **every,
        },
        DATA: {
            "base-url": base,
            "targets": [{"name": path[1:], "url": f"{path}/{{sku}}?price={{price}}"} for path in ten],
            **every,
        },
        ONE_VARYING: {"url": f"{base}{VARYING}{{i}}", **every},
        CHECK: {"url": f"{base}{VARYING}{{i}}", "expect-body": "World", **every},
    }


def _play(spec: Mapping[str, object], requests: int, data: Path | None) -> float:
    mapping = dict(spec) if data is None else {**spec, "requests": requests}
    arguments = (json.dumps(mapping), str(requests), "" if data is None else str(data))
    command = (sys.executable, "-m", "oku_benchmarks.contestants.request_loop", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise BenchmarkError(done.stderr.strip().rpartition("\n")[2])
    return float(done.stdout)


def pick(results: Results, contestant: str) -> list[float]:
    """What a request of a contestant cost, round by round."""
    ordered = sorted(results.rounds, key=lambda entry: entry.number)
    return [entry.cpu_us for entry in ordered if entry.contestant == contestant]
