"""docs/benchmarks.md, made of the documents beside it and of nothing else."""

from collections.abc import Callable, Mapping

from oku_benchmarks.cases import (
    abuse,
    clients,
    connections,
    cpu,
    hundred_million,
    ledger,
    ledger_days,
    memory,
    peers,
    scaling,
    trillion,
    wide,
    window,
)
from oku_benchmarks.documents.document import Document
from oku_benchmarks.sections import (
    abuse_section,
    clients_section,
    connections_section,
    cpu_section,
    hundred_million_section,
    ledger_days_section,
    ledger_section,
    memory_section,
    peers_section,
    scaling_section,
    wide_section,
    window_section,
)
from oku_benchmarks.sections.section import Goal, Section, build_source, build_table

_INTRODUCTION = """\
# Benchmarks

What Oku costs, how fast it is beside others, and whether the goals that it was built for are met. Everything
ran on one machine over loopback, where client, target, broker and coordinator share the processor: the
figures compare clients with each other, they do not say what a cluster or a network can do. Who is measured
is a process of its own, watched from outside: processor time and memory from `/proc`, requests from what the
target counted.

This page is written by `./task bench` from the raw numbers in `docs/benchmarks/`, never by hand; what was
not measured anew stays as it was, with its own date.

```
./task bench                              # all but the hundred million, under 40 minutes on 2 cores
./task bench -- memory ledger             # some of it
./task bench -- --rounds 9 peers          # more rounds where contestants take turns
./task bench -- hundred-million           # both parts, no-delay and posts: an hour and a half
./task bench -- --quick                   # does it work? under 8 minutes; writes into build/benchmarks
```

A busy machine measures its own queues. `load before` below says how many processes wanted to run in the
minute before a benchmark began; it should be near 0.
"""


def _build_long_section(document: Document) -> Section:
    return hundred_million_section.build_section(
        document.benchmark, document.read_results(hundred_million.Results), document.machine.cores
    )


_BUILDERS: Mapping[str, Callable[[Document], Section]] = {
    "peers": lambda document: peers_section.build_section(
        document.read_results(peers.Results), document.machine.cores
    ),
    "cpu": lambda document: cpu_section.build_section(document.read_results(cpu.Results)),
    "connections": lambda document: connections_section.build_section(
        document.read_results(connections.Results)
    ),
    "wide": lambda document: wide_section.build_section(document.read_results(wide.Results)),
    hundred_million.NO_DELAY: _build_long_section,
    hundred_million.POSTS: _build_long_section,
    "window": lambda document: window_section.build_section(document.read_results(window.Results)),
    "memory": lambda document: memory_section.build_section(document.read_results(memory.Results)),
    "ledger": lambda document: ledger_section.build_section(document.read_results(ledger.Results)),
    "scaling": lambda document: scaling_section.build_section(document.read_results(scaling.Results)),
    "trillion": lambda document: scaling_section.build_trillion_section(
        document.read_results(trillion.Results)
    ),
    "ledger-days": lambda document: ledger_days_section.build_section(
        document.read_results(ledger_days.Results)
    ),
    "abuse": lambda document: abuse_section.build_section(document.read_results(abuse.Results)),
    "clients": lambda document: clients_section.build_section(document.read_results(clients.Results)),
}


def build_page(documents: Mapping[str, Document]) -> str:
    """The page; a benchmark without a document is named as not measured."""
    sections = {name: build(documents[name]) for name, build in _BUILDERS.items() if name in documents}
    lines = [_INTRODUCTION, "## Goals", ""]
    lines += _build_goals([goal for section in sections.values() for goal in section.goals])
    for name, section in sections.items():
        source = build_source(documents[name], section.packages)
        lines += ["", f"## {section.title}", "", section.text, "", source]
    if missing := [name for name in _BUILDERS if name not in documents]:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _build_goals(goals: list[Goal]) -> list[str]:
    if not goals:
        return ["None is measured yet."]
    missed = sum(not goal.is_met for goal in goals)
    verdict = "All are met." if not missed else f"{missed} of {len(goals)} missed."
    rows = [[goal.text, goal.result, "yes" if goal.is_met else "**no**"] for goal in goals]
    return [
        f"Ratios are taken round by round; the figure is their median, in brackets their range. {verdict}",
        "",
        build_table(["goal", "result", "met"], rows),
    ]
