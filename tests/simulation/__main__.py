"""The command: plays seeds, tells the story of the first that breaks a law, and exits with 1 then."""

import argparse
import logging
import math
import os
import sys
import time
import warnings
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import tests.simulation.machine.interposition  # noqa: F401  # before any code of Oku: see there
from tests.simulation.loads import Load
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.campaign import Tally

_Choice = TypeVar("_Choice", bound=StrEnum)
_STEADY_HASHES = "0"
_SHORTEST_INTERVAL_S, _LONGEST_INTERVAL_S = 0.01, 60.0
_TELL_S = 30.0
_INTERRUPTED = 130


def main() -> int:
    """Play what the command line asks for; returns the exit code."""
    arguments = _parse()
    if os.environ.get("PYTHONHASHSEED") != _STEADY_HASHES:
        # The order of sets of strings must be the same in each process that plays a seed.
        os.environ["PYTHONHASHSEED"] = _STEADY_HASHES
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore", RuntimeWarning)  # what the dead had begun is never awaited
    from tests.simulation.campaign import Tally, play_seeds

    kinds, loads = _read_choice(arguments.faults, Fault), _read_choice(arguments.loads, Load)
    begun = told_at = time.monotonic()
    seeds = (
        [arguments.seed]
        if arguments.seed is not None
        else range(arguments.first, arguments.first + arguments.seeds)
    )
    tally = Tally()
    processes = 1 if arguments.seed is not None else arguments.processes
    try:
        for ending in play_seeds(seeds, kinds, arguments.interval, processes, arguments.lines, loads):
            tally.add(ending)
            now = time.monotonic()
            if ending.broken:
                _print(f"\nseed {ending.seed} breaks a law: {ending.broken}\n\n{ending.story}\n")
                _print(f"again: ./task simulate -- --seed {ending.seed}" + _repeat_options(arguments))
                if not arguments.keep_going:
                    break
            elif arguments.seed is not None:
                _print(f"seed {ending.seed}: {ending.state}, story {ending.digest}")
            if arguments.at_least_faults and tally.faults >= arguments.at_least_faults:
                break
            if arguments.minutes and now - begun > 60 * arguments.minutes:
                break
            if now - told_at > _TELL_S:
                told_at = now
                sys.stderr.write(f"{_describe(tally)}; the next is seed {ending.seed + 1}\n")
    except KeyboardInterrupt:
        rest = f"--first {seeds[0] + tally.seeds} --seeds {len(seeds) - tally.seeds}"
        _print(f"{_describe(tally)}; to go on: ./task simulate -- {rest}" + _repeat_options(arguments))
        return 1 if tally.broken else _INTERRUPTED
    _print_end(tally, time.monotonic() - begun)
    return 1 if tally.broken or tally.bounds.find_above(arguments.most_ratio) else 0


def _print_end(tally: "Tally", took_s: float) -> None:
    ended = ", ".join(f"{count:,} {state or 'not begun'}" for state, count in sorted(tally.states.items()))
    _print(
        f"{_describe(tally)}; {tally.steps:,} steps, {tally.seconds / 3600:,.1f} simulated hours"
        f" in {took_s:.1f} s, {tally.faults / took_s * 60:,.0f} faults a minute; runs: {ended}"
    )
    if widths := tally.bounds.describe():
        _print(f"resent_at_most by what was resent, medians: {widths}")


def _describe(tally: "Tally") -> str:
    broken = f"{len(tally.broken)} seed{'' if len(tally.broken) == 1 else 's'} broke a law"
    return f"{tally.seeds:,} seeds, {tally.faults:,} faults, {broken}"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task simulate --", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds to play (default 100)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--seed", type=int, help="play this seed alone")
    parser.add_argument(
        "--faults",
        help="only these faults, with commas between them; empty for none. All: " + ", ".join(Fault),
    )
    parser.add_argument(
        "--interval",
        type=_read_interval,
        metavar="SECONDS",
        help="the mean time between faults, for all seeds alike",
    )
    parser.add_argument("--loads", help="only these loads, with commas between them. All: " + ", ".join(Load))
    parser.add_argument(
        "--at-least-faults", type=int, help="end after the seed with which there were so many"
    )
    parser.add_argument(
        "--most-ratio", type=float, default=math.inf,
        help="fail if `resent_at_most` is more times what was resent, as the median of a mode",
    )  # fmt: skip
    parser.add_argument("--minutes", type=float, help="end after so many minutes")
    parser.add_argument("--processes", type=int, help="how many processors to use (default: all)")
    parser.add_argument("--lines", type=int, default=80, help="how long a story is (default 80)")
    parser.add_argument("--keep-going", action="store_true", help="go on after a seed that breaks a law")
    return parser.parse_args()


def _read_choice(text: str | None, kind: type[_Choice]) -> frozenset[_Choice] | None:
    return None if text is None else frozenset(map(kind, filter(None, text.split(","))))


def _read_interval(text: str) -> float:
    interval_s = float(text)
    if not _SHORTEST_INTERVAL_S <= interval_s <= _LONGEST_INTERVAL_S:
        raise argparse.ArgumentTypeError(f"from {_SHORTEST_INTERVAL_S} to {_LONGEST_INTERVAL_S} seconds")
    return interval_s


def _repeat_options(arguments: argparse.Namespace) -> str:
    faults = "" if arguments.faults is None else f" --faults '{arguments.faults}'"
    faults += "" if arguments.loads is None else f" --loads {arguments.loads}"
    return faults + (f" --interval {arguments.interval}" if arguments.interval is not None else "")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
