"""The section of the benchmark `cpu`: what a request costs, and where it goes."""

from collections.abc import Sequence

from oku_benchmarks.cases.cpu import CONNECTIONS, OKU, Results, Round
from oku_benchmarks.measuring.spread import build_ratios, build_spread
from oku_benchmarks.sections.section import NONE, Section, build_table, fill_text
from oku_benchmarks.turns.rivals import WRK

_TEXT = """\
One worker of `oku run --engine httptools` and `wrk -t1` take turns at nginx with {connections}
connections, {rounds} rounds. Processor time is that of the client's process between 20 % and 90 % of its
requests. What it goes into is sampled (`perf record`, the kernel's clock, about 1,000 times a second, in
the middle of each turn), by the library that was executing.

{table}

{ratio}Instructions are those of user space, counted by callgrind (hardware counters are missing in many
virtual machines): the difference of a longer and a shorter run, divided by the difference in requests.
For Oku that is the worker's lease runner and engine with all that they record, without the broker.
{missing}"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    rounds = {name: [entry for entry in results.rounds if entry.contestant == name] for name in (OKU, WRK)}
    rounds = {name: entries for name, entries in rounds.items() if entries}
    missing = f"\nNot installed: {', '.join(results.missing)}.\n" if results.missing else ""
    return Section(
        title="Processor time of a request, and where it goes",
        text=fill_text(
            _TEXT,
            connections=CONNECTIONS,
            rounds=max(entry.number for entry in results.rounds),
            table=build_table(["", *rounds], _build_rows(results, rounds)),
            ratio=_build_ratio(rounds),
            missing=missing,
        ),
        goals=[],
        packages=("httptools", "uvloop", "wrk", "nginx", "perf", "valgrind"),
    )


def _build_rows(results: Results, rounds: dict[str, list[Round]]) -> list[list[str]]:
    costs = [build_spread(entry.cpu_us for entry in entries).format(".2f") for entries in rounds.values()]
    counts = [
        f"{results.instructions[name]:,.0f}" if name in results.instructions else NONE for name in rounds
    ]
    parts = sorted(
        {part for entry in results.rounds for part in entry.shares},
        key=lambda part: (*(-_measure_share(entries, part) for entries in rounds.values()), part),
    )
    return [
        ["processor time of a request, µs", *costs],
        ["instructions of user space for a request", *counts],
        *([f"in: {part}", *(_format_share(entries, part) for entries in rounds.values())] for part in parts),
    ]


def _format_share(entries: Sequence[Round], part: str) -> str:
    share = _measure_share(entries, part)
    cost_us = build_spread(entry.cpu_us for entry in entries).median
    return f"{share:.1%}, {share * cost_us:.2f} µs" if share else NONE


def _measure_share(entries: Sequence[Round], part: str) -> float:
    return build_spread(entry.shares.get(part, 0.0) for entry in entries).median


def _build_ratio(rounds: dict[str, list[Round]]) -> str:
    if WRK not in rounds:
        return ""
    ratio = build_ratios(*((entry.cpu_us for entry in rounds[name]) for name in (OKU, WRK)))
    return f"Oku needs {ratio.format('.2f')} times the processor time of wrk. "
