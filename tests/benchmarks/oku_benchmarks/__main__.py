"""`./task bench`: measures the benchmarks, or the named ones, in turn, and writes the page anew."""

import argparse
import dataclasses
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from oku_benchmarks.benchmarks import BENCHMARKS
from oku_benchmarks.cases import hundred_million
from oku_benchmarks.cases.leases import LEASE_CASES
from oku_benchmarks.documents.attachments import move_kept
from oku_benchmarks.documents.document import Document, encode_results, read_documents, write_document
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.machine import fetch_commit, fetch_machine, fetch_versions
from oku_benchmarks.measuring.vitals import is_supported
from oku_benchmarks.page import build_page
from oku_benchmarks.plan import FULL, QUICK, RATE_PARTS, Plan
from oku_benchmarks.progress import log
from oku_core.errors import UserError
from oku_core.process.resources import raise_open_files

_LEASES = "leases"
_RATES = "rates"
_ONLY_NAMED = ("answers", "http2", _LEASES, "speed", _RATES)
"""Measured only if they are named."""
_PARTS: Mapping[str, Collection[str]] = {_LEASES: tuple(LEASE_CASES), _RATES: tuple(RATE_PARTS)}
"""What may follow a name: parts of it."""
_LONG = tuple(name for name, benchmark in BENCHMARKS.items() if benchmark.is_long and name not in _ONLY_NAMED)
_SHORT_NAMES = {
    "hundred-million": _LONG,
    "no-delay": (hundred_million.NO_DELAY,),
    "posts": (hundred_million.POSTS,),
}
_NAMES = ", ".join([*(name for name in BENCHMARKS if name not in _LONG), *_SHORT_NAMES])
_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure and write; 1 when a benchmark could not be measured, 2 on wrong arguments."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    names = [name for given in options.names for name in _SHORT_NAMES.get(given, (given,))]
    parts = {
        whole: tuple(name for name in names if whole in names and name in known)
        for whole, known in _PARTS.items()
    }
    names = [name for name in names if not any(name in chosen for chosen in parts.values())]
    if unknown := [name for name in names if name not in BENCHMARKS]:
        may_follow = (f"nor after {whole} one of {', '.join(known)}" for whole, known in _PARTS.items())
        parser.error(f"{unknown[0]} is not one of {_NAMES}, {', '.join(may_follow)}")
    for flag, value in (("--rounds", options.rounds), ("--requests", options.requests)):
        if value is not None and value < 1:
            parser.error(f"{flag}: {value} is not at least 1")
    if not is_supported():
        log("bench: this system has no /proc to read processor time and memory from; it needs Linux")
        return 2
    plan = dataclasses.replace(
        QUICK if options.quick else FULL,
        lease_cases=parts[_LEASES],
        rate_parts=parts[_RATES],
        baseline=options.baseline,
    )
    if options.rounds:
        plan = dataclasses.replace(plan, rounds=options.rounds, rate_rounds=options.rounds)
    if options.requests:
        plan = dataclasses.replace(plan, hundred_million=options.requests)
    docs = Path("build/benchmarks") if plan.quick or options.requests else Path("docs")
    failed = []
    if not options.page:
        raise_open_files()
        # Where the other checkout lies says nothing to others.
        shown = [fetch_commit(Path(word)) if word == options.baseline else word for word in arguments]
        names = names or [name for name, benchmark in BENCHMARKS.items() if not benchmark.is_long]
        failed = [name for name in names if not _measure(name, plan, docs / "benchmarks", shown)]
    docs.mkdir(parents=True, exist_ok=True)
    page = docs / "benchmarks.md"
    page.write_text(build_page(read_documents(docs / "benchmarks")), encoding="utf-8")
    log(f"{page} is written")
    return 1 if failed else 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./task bench --", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of {_NAMES}; parts of {_LEASES} and {_RATES} may follow them; else all but"
        f" {', '.join(_ONLY_NAMED)} and the last three",
    )
    parser.add_argument("--quick", action="store_true", help="short runs, written into build/benchmarks")
    parser.add_argument("--rounds", type=int, help="how often contestants take turns")
    parser.add_argument(
        "--requests", type=int, help="of hundred-million, to try it; written into build/benchmarks, too"
    )
    parser.add_argument(
        "--baseline", default="", metavar="CHECKOUT",
        help=f"of {_LEASES} and speed: another checkout, set up, that takes its turns, too",
    )  # fmt: skip
    parser.add_argument("--page", action="store_true", help="only write the page, from the numbers there are")
    return parser


def _measure(name: str, plan: Plan, docs: Path, arguments: Sequence[str]) -> bool:
    machine = fetch_machine()
    log(f"{name}: load before {machine.load_before}")
    if machine.load_before > _QUIET_LOAD:
        log("  the machine is not quiet: what follows measures that, too")
    scratch = Path("build")
    scratch.mkdir(exist_ok=True)
    began = time.monotonic()
    # On the disk of the checkout, where a user's .oku would be.
    folder = Path(tempfile.mkdtemp(dir=scratch, prefix="bench-")).absolute()
    is_kept = False
    try:
        benchmark = BENCHMARKS[name]
        results = benchmark.measure(plan, folder)
        if benchmark.merge and (before := read_documents(docs).get(name)):
            results = benchmark.merge(before.read_results(benchmark.results), results)
        move_kept(folder, docs)
    except (BenchmarkError, UserError) as error:
        is_kept = True
        log(f"bench: {name}: {error}; its logs are in {scratch / folder.name}")
        return False
    finally:
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)
    document = Document(
        benchmark=name,
        command=" ".join(["./task bench", *(["--", *arguments] if arguments else [])]),
        measured_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        took_s=round(time.monotonic() - began, 1),
        commit=fetch_commit(),
        machine=machine,
        versions=fetch_versions(),
        results=encode_results(results),
    )
    log(f"  {write_document(docs, document)} is written, after {document.took_s:.0f} s")
    return True


def _interrupt(*_: object) -> None:
    """What is running is ended and the scratch folder removed, as after Ctrl-C."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        log("bench: stopped")
        sys.exit(130)
