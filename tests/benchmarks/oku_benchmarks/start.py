"""Start: how long what users type takes, with Oku and with other tools, and what is imported."""

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.faults.abuse import run_site

from oku_benchmarks.install import find_program, list_missing
from oku_benchmarks.processes import Count
from oku_benchmarks.report import BenchmarkError, Goal, Plan, Report, Table, build_spread, log
from oku_benchmarks.rivals import write_script
from oku_benchmarks.targets import DelayServer
from oku_cli.process.child import Child

_OKU = str(Path(sys.executable).with_name("oku"))
_TIMEOUT_S = 60.0
_LINES: Mapping[str, str] = {
    "oku": "oku run URL -n 1000 -c 50",
    "oha": "oha -n 1000 -c 50 URL",
    "hey": "hey -n 1000 -c 50 URL",
    "k6": "k6 run -u 50 -i 1000 -e TARGETS=URL k6_get.js",
    "locust": "locust -f one_locustfile.py --headless -u 50 -r 50 -t 3s --host URL",
}
"""What newcomers type."""
_GOALS: Mapping[str, tuple[int, float | None]] = {
    "oku run URL -n 1000 -c 50": (1000, 1.0),
    "oku run counted_scenario.py -n 10 --host URL": (10, 1.5),
    "oku run --coordinator COORDINATOR --token TOKEN URL -n 1000 -c 50": (1000, None),
    "oku --help": (0, 0.25),
}
"""Requests, and seconds until the prompt is back."""
_IMPORT = """import sys, time
began = time.process_time()
import {module}
print(time.process_time() - began, len(sys.modules))"""
_IMPORTS = ("oku_cli.main", "oku_workers.process", "oku_coordinator.process", "oku_server.process")


class Timing(NamedTuple):
    """Seconds until a command's first request (or its end) and its end; processor time of all processes."""

    first_request_s: float
    prompt_s: float
    cpu_s: float
    exit_code: int
    requests: int


def time_command(words: Sequence[str], folder: Path, count: Count) -> Timing:
    """Run a command in a folder, which is its user's home; `count` is what the target has received."""
    own = {"HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
    child = Child("command", words, folder / "command.log", own, folder)
    before, began, first_s = count(), time.monotonic(), 0.0
    spent_s = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    child.start()
    while (code := child.find_death()) is None:
        if not first_s and count() > before:
            first_s = time.monotonic() - began
        if time.monotonic() > began + _TIMEOUT_S:
            child.kill()
            raise BenchmarkError(f"{words[0]} did not end within {_TIMEOUT_S:.0f} s")
        time.sleep(0.005)
    end_s = time.monotonic() - began
    spent_s = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - spent_s
    return Timing(first_s or end_s, end_s, spent_s, code, count() - before)


def _fill_in(line: str, folder: Path, words: Mapping[str, str]) -> list[str]:
    """The arguments of a command line; scripts are written into the folder."""
    for script in re.findall(r"\w+\.(?:js|py)", line):
        write_script(folder, script)
    return [
        re.sub(r"\b[A-Z]{3,}\b", lambda found: words.get(found[0], found[0]), word)
        for word in line.split()[1:]
    ]


def measure_commands(plan: Plan) -> Report:
    """What users type: seconds to the prompt, and processor time of all processes together."""
    timings: dict[str, list[Timing]] = {}
    with run_site(plan.make_folder("site")) as site, DelayServer(plan.folder / "server") as server:
        words = {"COORDINATOR": site.api.url, "TOKEN": TOKEN, "URL": server.url.format(i="")}
        for number in range(plan.rounds):
            for place, line in enumerate(_GOALS):
                folder = plan.make_folder(f"{number}-{place}")
                timing = time_command([_OKU, *_fill_in(line, folder, words)], folder, server.read_served)
                timings.setdefault(line, []).append(timing)
                log(f"  {line}: {timing.prompt_s:.2f} s, {timing.cpu_s:.2f} s of processor time")
    rows, goals = [], []
    for line, each in timings.items():
        requests, most_s = _GOALS[line]
        served = [timing.requests for timing in each]
        is_met = served == [requests] * len(each) and not any(timing.exit_code for timing in each)
        goals.append(Goal(f"`{line}`: {requests:,} requests", f"{served}", is_met, is_exact=True))
        prompts, spent = map(build_spread, list(zip(*each, strict=True))[1:3])
        rows.append((f"`{line}`", f"{prompts.format('.2f')} s", f"{spent.format('.2f')} s"))
        if most_s is not None:
            goals.append(Goal(f"`{line}`: less than {most_s:g} s", rows[-1][1], prompts.median < most_s))
    return Report(tables=[Table(("typed", "prompt again", "processor time"), rows)], goals=goals)


def measure_tools(plan: Plan) -> Report:
    """What newcomers type, for Oku, oha, hey, k6 and Locust: seconds, and the exit code when all fail."""
    rows, missing = [], []
    for name, line in _LINES.items():
        program = find_program(name) or shutil.which(name, path=str(Path(sys.executable).parent))
        if program is None:
            missing.append(name)
            continue
        timings, codes = [], []
        for number in range(plan.rounds):
            for error_rate in ("0", "1") if number == 0 else ("0",):
                folder = plan.make_folder(f"{name}-{number}-{error_rate}")
                with DelayServer(folder / "server", "0s", "--error-rate", error_rate) as server:
                    words = _fill_in(line, folder, {"URL": server.url.format(i="")})
                    timing = time_command([program, *words], folder, server.read_served)
                codes.append(timing.exit_code)
                if error_rate == "0":
                    timings.append(timing)
        firsts, prompts, spent, _, requests = map(build_spread, zip(*timings, strict=True))
        seconds = (f"{spread.format('.2f')} s" for spread in (firsts, prompts, spent))
        rows.append((f"`{line}`", *seconds, requests.format(), str(codes[1])))
        log(f"  {', '.join(rows[-1])}")
    head = ("typed", "first request", "prompt again", "processor time", "requests", "exit code of 500s")
    return Report(tables=[Table(head, rows)], notes=list_missing(missing))


def measure_imports(plan: Plan) -> Report:
    """The processor time that each process takes for its imports, and how many modules those are."""
    rows = []
    for module in _IMPORTS:
        seconds, counts = [], []
        for _ in range(plan.rounds):
            command = [sys.executable, "-c", _IMPORT.format(module=module)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            took_s, count = done.stdout.split()
            seconds.append(float(took_s))
            counts.append(int(count))
        rows.append(
            (f"`{module}`", f"{build_spread(seconds).format('.2f')} s", build_spread(counts).format())
        )
        log(f"  {', '.join(rows[-1])}")
    return Report(tables=[Table(("process", "processor time of imports", "modules"), rows)])
