"""Start: how long until the first request, with Oku and with other tools, and what is imported."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oku_benchmarks.contest import OwnServers
from oku_benchmarks.install import describe_missing, find_program
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
    "k6": "k6 run -u 50 -i 1000 -e TARGETS=URL k6_get.js",
    "locust": "locust -f one_locustfile.py --headless -u 50 -r 50 -t 3s --host URL",
}
"""What newcomers type."""
_IMPORT = """import sys, time
began = time.process_time()
import {module}
print(time.process_time() - began, len(sys.modules))"""
_IMPORTS = ("oku_cli.main", "oku_workers.process", "oku_coordinator.process", "oku_server.process")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds until a command's first request (its end if there was none), and until its end."""

    first_request_s: float
    prompt_s: float
    exit_code: int
    requests: int


def time_command(words: Sequence[str], folder: Path, count: Count) -> Timing:
    """Run a command in a folder, which is its user's home; `count` is what the target has received."""
    environment = {
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PATH": os.environ["PATH"],
    }
    child = Child("command", words, folder / "command.log", environment, folder)
    before, began, first_s = count(), time.monotonic(), 0.0
    child.start()
    while (code := child.find_death()) is None:
        if not first_s and count() > before:
            first_s = time.monotonic() - began
        if time.monotonic() > began + _TIMEOUT_S:
            child.kill()
            raise BenchmarkError(f"{words[0]} did not end within {_TIMEOUT_S:.0f} s")
        time.sleep(0.005)
    end_s = time.monotonic() - began
    return Timing(first_request_s=first_s or end_s, prompt_s=end_s, exit_code=code, requests=count() - before)


def measure_first(plan: Plan) -> Report:
    """`oku run -n 10` with and without a URL: seconds to the first request, and to the prompt."""
    timings: dict[tuple[str, str], list[Timing]] = {}
    with DelayServer(plan.folder / "server") as server:
        for number in range(plan.rounds):
            for engine in plan.choose(("aiohttp", "httptools"), ("httptools",)):
                for target in ("own delay server", "a URL"):
                    folder = plan.make_folder(f"{number}-{engine}-{target.replace(' ', '-')}")
                    own = target != "a URL"
                    words = [_OKU, "run", *([] if own else [server.url]), "-n", "10", "--engine", engine]
                    words += ["--data-dir", str(folder)]
                    count = OwnServers(folder).read_served if own else server.read_served
                    timing = time_command(words, folder, count)
                    timings.setdefault((target, engine), []).append(timing)
                    log(f"  {target}, {engine}: first request after {timing.first_request_s:.2f} s")
    rows, goals = [], []
    for (target, engine), each in timings.items():
        label, requests = f"{target}, `{engine}`", [timing.requests for timing in each]
        text = f"{label}: ten requests reach the target, the first before the end"
        is_met = all(
            timing.requests == 10 and timing.exit_code == 0 and timing.first_request_s < timing.prompt_s
            for timing in each
        )
        goals.append(Goal(text, f"{requests}", is_met, is_exact=True))
        firsts = build_spread(timing.first_request_s for timing in each)
        prompts = build_spread(timing.prompt_s for timing in each)
        rows.append((target, f"`{engine}`", *(f"{spread.format('.2f')} s" for spread in (firsts, prompts))))
        goals += [
            Goal(f"{label}: first request in less than 1 s", rows[-1][2], firsts.median < 1),
            Goal(f"{label}: `oku run -n 10` in less than 2 s", rows[-1][3], prompts.median < 2),
        ]
    head = ("target", "engine", "first request", "prompt again")
    return Report(tables=[Table(head, rows)], goals=goals)


def measure_tools(plan: Plan) -> Report:
    """What newcomers type, for Oku, oha, k6 and Locust: seconds, and the exit code when all fail."""
    rows = []
    for name, line in _LINES.items():
        program = find_program(name) or shutil.which(name, path=str(Path(sys.executable).parent))
        if program is None:
            log(f"  left out: {describe_missing(name)}")
            continue
        timings, codes = [], []
        for number in range(plan.rounds):
            for error_rate in ("0", "1") if number == 0 else ("0",):
                folder = plan.make_folder(f"{name}-{number}-{error_rate}")
                with DelayServer(folder / "server", "0s", "--error-rate", error_rate) as server:
                    scripts = {
                        word: write_script(folder, word)
                        for word in line.split()
                        if word.endswith((".js", ".py"))
                    }
                    words = [
                        scripts.get(word, word.replace("URL", server.url.format(i="")))
                        for word in shlex.split(line)
                    ]
                    timing = time_command([program, *words[1:]], folder, server.read_served)
                codes.append(timing.exit_code)
                if error_rate == "0":
                    timings.append(timing)
        firsts = build_spread(timing.first_request_s for timing in timings)
        prompts = build_spread(timing.prompt_s for timing in timings)
        requests = build_spread(timing.requests for timing in timings)
        rows.append((
            f"`{line}`", f"{firsts.format('.2f')} s", f"{prompts.format('.2f')} s", requests.format(),
            str(codes[1]),
        ))  # fmt: skip
        log(f"  {', '.join(rows[-1])}")
    head = ("typed", "first request", "prompt again", "requests", "exit code if all answers are 500")
    return Report(tables=[Table(head, rows)])


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
