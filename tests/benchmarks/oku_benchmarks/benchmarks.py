"""All benchmarks by their names for `./task bench`: how each is measured, and its section of the page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from oku_benchmarks.cases import (
    abuse,
    answers,
    clients,
    connections,
    cpu,
    first_minute,
    http2,
    hundred_million,
    leases,
    ledger,
    ledger_days,
    memory,
    parts,
    peers,
    rates,
    scaling,
    speed,
    start,
    targets,
    trillion,
    user_code,
    wide,
    window,
)
from oku_benchmarks.documents.document import Document
from oku_benchmarks.plan import Plan
from oku_benchmarks.sections import (
    abuse_section,
    answers_section,
    clients_section,
    connections_section,
    cpu_section,
    first_minute_section,
    http2_section,
    hundred_million_section,
    leases_section,
    ledger_days_section,
    ledger_section,
    memory_section,
    parts_section,
    peers_section,
    rates_section,
    scaling_section,
    speed_section,
    start_section,
    targets_section,
    user_code_section,
    wide_section,
    window_section,
)
from oku_benchmarks.sections.section import Section


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Args:
        measure: measures it, in a folder of its own.
        results: what that gives.
        build_section: the section of the page, of these results and the document that has them.
        is_long: whether it is measured only when it is named.
        merge: makes one of the results that there are and new ones of a part of it; None if it is always
            measured as a whole.
    """

    measure: Callable[[Plan, Path], msgspec.Struct]
    results: type[msgspec.Struct]
    build_section: Callable[[Any, Document], Section]
    is_long: bool = False
    merge: Callable[[Any, Any], msgspec.Struct] | None = None

    def describe(self, document: Document) -> Section:
        """The section of a document."""
        return self.build_section(document.read_results(self.results), document)


def _without_document(build_section: Callable[[Any], Section]) -> Callable[[Any, Document], Section]:
    return lambda results, _: build_section(results)


def _build_long_section(results: hundred_million.Results, document: Document) -> Section:
    return hundred_million_section.build_section(document.benchmark, results, document.machine.cores)


BENCHMARKS: Mapping[str, Benchmark] = {
    "first-minute": Benchmark(
        first_minute.measure, first_minute.Results, _without_document(first_minute_section.build_section)
    ),
    "start": Benchmark(start.measure, start.Results, _without_document(start_section.build_section)),
    "peers": Benchmark(
        peers.measure,
        peers.Results,
        lambda results, document: peers_section.build_section(results, document.machine.cores),
    ),
    "answers": Benchmark(
        answers.measure,
        answers.Results,
        lambda results, document: answers_section.build_section(results, document.machine.cores),
        is_long=True,
    ),
    "http2": Benchmark(
        http2.measure,
        http2.Results,
        lambda results, document: http2_section.build_section(results, document.machine.cores),
        is_long=True,
    ),
    "cpu": Benchmark(cpu.measure, cpu.Results, _without_document(cpu_section.build_section)),
    "connections": Benchmark(
        connections.measure, connections.Results, _without_document(connections_section.build_section)
    ),
    "wide": Benchmark(wide.measure, wide.Results, _without_document(wide_section.build_section)),
    hundred_million.NO_DELAY: Benchmark(
        hundred_million.measure_no_delay, hundred_million.Results, _build_long_section, is_long=True
    ),
    hundred_million.POSTS: Benchmark(
        hundred_million.measure_posts, hundred_million.Results, _build_long_section, is_long=True
    ),
    "leases": Benchmark(
        leases.measure,
        leases.Results,
        _without_document(leases_section.build_section),
        is_long=True,
        merge=leases.merge,
    ),
    "speed": Benchmark(
        speed.measure, speed.Results, _without_document(speed_section.build_section), is_long=True
    ),
    "targets": Benchmark(targets.measure, targets.Results, _without_document(targets_section.build_section)),
    "user-code": Benchmark(
        user_code.measure, user_code.Results, _without_document(user_code_section.build_section)
    ),
    "rates": Benchmark(
        rates.measure,
        rates.Results,
        _without_document(rates_section.build_section),
        is_long=True,
        merge=rates.merge,
    ),
    "window": Benchmark(window.measure, window.Results, _without_document(window_section.build_section)),
    "memory": Benchmark(memory.measure, memory.Results, _without_document(memory_section.build_section)),
    "ledger": Benchmark(ledger.measure, ledger.Results, _without_document(ledger_section.build_section)),
    "parts": Benchmark(parts.measure, parts.Results, _without_document(parts_section.build_section)),
    "scaling": Benchmark(scaling.measure, scaling.Results, _without_document(scaling_section.build_section)),
    "trillion": Benchmark(
        trillion.measure, trillion.Results, _without_document(scaling_section.build_trillion_section)
    ),
    "ledger-days": Benchmark(
        ledger_days.measure, ledger_days.Results, _without_document(ledger_days_section.build_section)
    ),
    "abuse": Benchmark(abuse.measure, abuse.Results, _without_document(abuse_section.build_section)),
    "clients": Benchmark(clients.measure, clients.Results, _without_document(clients_section.build_section)),
}
