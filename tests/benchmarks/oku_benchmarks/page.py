"""docs/benchmarks.md, made of the documents beside it and of nothing else."""

from collections.abc import Mapping

from oku_benchmarks.benchmarks import BENCHMARKS
from oku_benchmarks.documents.document import Document
from oku_benchmarks.sections.section import Goal, build_source, build_table

_INTRODUCTION = """\
# Benchmarks

What Oku costs, how fast it is beside others, and whether the goals that it was built for are met. Everything
ran on one machine over loopback, where client, target, broker and coordinator share the processor: the
figures compare clients with each other, they do not say what a cluster or a network can do. Who is measured
is a process of its own, watched from outside: processor time and memory from `/proc`, requests from what the
target counted.

This page is written by `./task bench` from the raw numbers in `docs/benchmarks/`, never by hand; what was
not measured anew stays as it was, with its own date.

<!-- not run: `./task bench -- --quick` alone takes minutes -->
```sh
./task bench                              # all but the hundred million, under 40 minutes on 2 cores
./task bench -- memory ledger             # some of it
./task bench -- --rounds 9 peers          # more rounds where contestants take turns
./task bench -- --baseline ../old leases  # what makes loads stutter; an older checkout goes first
./task bench -- leases hanging kills      # some of these cases; --help names all
./task bench -- --baseline ../old speed   # the same processor time as an older checkout?
./task bench -- answers                   # the same answer and ones that vary, beside wrk: 35 minutes
./task bench -- http2                     # HTTP/2, beside h2load, oha and k6: 15 minutes
./task bench -- targets                   # what targets, data and checks cost a request: a minute
./task bench -- rates                     # to keep a rate, beside seven others: 10 minutes
./task bench -- rates 1000/s freeze       # some of these parts
./task bench -- hundred-million           # both parts, no-delay and posts: an hour and a half
./task bench -- --quick                   # does it work? under 8 minutes; writes into build/benchmarks
```

A busy machine measures its own queues. `load before` below says how many processes wanted to run in the
minute before a benchmark began; it should be near 0.
"""


def build_page(documents: Mapping[str, Document]) -> str:
    """The page; a benchmark without a document is named as not measured."""
    sections = {
        name: benchmark.describe(documents[name])
        for name, benchmark in BENCHMARKS.items()
        if name in documents
    }
    lines = [_INTRODUCTION, "## Goals", ""]
    lines += _build_goals([goal for section in sections.values() for goal in section.goals])
    for name, section in sections.items():
        source = build_source(documents[name], section.packages)
        lines += ["", f"## {section.title}", "", section.text, "", source]
    if missing := [name for name in BENCHMARKS if name not in documents]:
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
