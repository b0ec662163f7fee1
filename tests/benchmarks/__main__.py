"""`./task bench`: measures all benchmarks or the named ones, in turn, and writes the page anew."""

import argparse
import dataclasses
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from oku_core.errors import UserError

from . import clients, ledger, memory, throughput, window
from .document import Document, encode_results, read_documents, write_document
from .error import BenchmarkError
from .machine import fetch_commit, fetch_machine, fetch_versions
from .page import build_page
from .plan import FULL, QUICK, Plan
from .progress import log
from .vitals import is_supported

BENCHMARKS: Mapping[str, Callable[[Plan, Path], msgspec.Struct]] = {
    "throughput": throughput.measure,
    "window": window.measure,
    "memory": memory.measure,
    "ledger": ledger.measure,
    "clients": clients.measure,
}
_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure and write; 1 when a benchmark could not be measured, 2 on wrong arguments."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"{unknown[0]} is not one of {', '.join(BENCHMARKS)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds: {options.rounds} is not at least 1")
    if not is_supported():
        log("bench: this system has no /proc to read processor time and memory from; it needs Linux")
        return 2
    plan = QUICK if options.quick else FULL
    if options.rounds:
        plan = dataclasses.replace(plan, rounds=options.rounds)
    docs = Path("build/benchmarks") if plan.quick else Path("docs")
    failed = []
    if not options.page:
        _allow_connections()
        names = options.names or list(BENCHMARKS)
        failed = [name for name in names if not _measure(name, plan, docs / "benchmarks", arguments)]
    page = docs / "benchmarks.md"
    page.write_text(build_page(read_documents(docs / "benchmarks")), encoding="utf-8")
    log(f"{page} is written")
    return 1 if failed else 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./task bench --", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; else all")
    parser.add_argument("--quick", action="store_true", help="short runs, written into build/benchmarks")
    parser.add_argument("--rounds", type=int, help="how often contestants take turns")
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
    with tempfile.TemporaryDirectory(dir=scratch, prefix="bench-", ignore_cleanup_errors=True) as folder:
        try:
            results = BENCHMARKS[name](plan, Path(folder).absolute())
        except (BenchmarkError, UserError) as error:
            log(f"bench: {name}: {error}")
            return False
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


def _allow_connections() -> None:
    """As many open files as this process may have, for it and all that it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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
