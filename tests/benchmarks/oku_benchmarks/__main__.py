"""`./task bench -- NAME…`: measures a question or a benchmark, and writes its tables into the page."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from oku_benchmarks.page import PAGE, describe_origin, fetch_commit, update_page
from oku_benchmarks.questions import BENCHMARKS, find_benchmarks, list_questions
from oku_benchmarks.report import BenchmarkError, Plan, Report, log
from oku_core.errors import UserError
from oku_core.process.resources import raise_open_files

_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure; 1 when a benchmark failed or missed an exact goal, 2 on wrong arguments."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    if not options.names:
        sys.stdout.write(f"{list_questions()}\n")
        return 0
    names = [each for name in options.names for each in find_benchmarks(name)]
    for name in options.names:
        if not find_benchmarks(name):
            parser.error(f"{name} is not a question or a benchmark; ./task bench lists them")
    if not Path("/proc/self/stat").exists():
        parser.error("this system has no /proc to read processor time and memory from; it needs Linux")
    raise_open_files()
    is_written = not (options.small or options.case or options.requests)
    # Where the other checkout is, is nobody else's business.
    shown = [fetch_commit(options.baseline) if word == str(options.baseline) else word for word in arguments]
    is_well = True
    for name in names:
        load_before = os.getloadavg()[0]
        log(f"{name}: load before {load_before:.1f}{'' if load_before < _QUIET_LOAD else ', not quiet'}")
        report = measure(name, options)
        if report is None:
            is_well = False
            continue
        sys.stdout.write(f"{report.build_markdown()}\n")
        for goal in report.misses:
            log(f"bench: {name}: missed: {goal.text}: {goal.result}")
            is_well = False
        if is_written and not report.misses:
            origin = describe_origin(f"./task bench -- {' '.join(shown)}", load_before)
            PAGE.write_text(update_page(PAGE.read_text(), name, report, origin))
    return 0 if is_well else 1


def measure(name: str, options: argparse.Namespace) -> Report | None:
    """Measure a benchmark in a folder of its own; None when that fails, and the folder stays."""
    benchmark, build = BENCHMARKS[name], Path("build")
    build.mkdir(exist_ok=True)
    # On the disk of the checkout, where a user's data folder would be.
    folder = Path(tempfile.mkdtemp(dir=build, prefix="bench-")).absolute()
    plan = Plan(
        folder=folder,
        is_small=options.small,
        rounds=options.rounds or (1 if options.small else benchmark.rounds),
        only=options.case,
        baseline=options.baseline,
        requests=options.requests,
    )
    try:
        report = benchmark.measure(plan)
    except (BenchmarkError, UserError) as error:
        log(f"bench: {name}: {error}; its logs are in {folder}")
        return None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return report


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./task bench --", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a question or a benchmark; without one, all are listed"
    )
    parser.add_argument(
        "--small", action="store_true", help="see that it works: short runs, nothing is written"
    )
    parser.add_argument("--rounds", type=int, default=0, help="how often contestants take turns")
    parser.add_argument(
        "--case", action="append", default=[], help="only this case of cases, answers, http2 or user-code"
    )
    parser.add_argument(
        "--requests", type=int, default=0, help="of no-delay, posts, run and wide, to try them"
    )
    parser.add_argument("--baseline", type=Path, metavar="CHECKOUT", help="of cost: another checkout, set up")
    return parser


def _interrupt(*_: object) -> None:
    """Ends what is running and removes the folder, as after Ctrl-C."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        log("bench: stopped")
        sys.exit(130)
