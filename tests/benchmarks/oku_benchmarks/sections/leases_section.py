"""The section of the benchmark `leases`: goals of leases under what makes loads stutter."""

from oku_benchmarks.cases.leases import Results, Row
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text

_TEXT = """\
A stack of real processes sends a bounded load to a target that counts, ten times a second, what it received,
how often each index came, and how many slots of its clients work: a slot that waits for its next request for
longer than 0.1 s does not. `before` is commit 9096cef, which gave each worker two leases of a fixed size and
heard of them at their ends; it took its turn before each case.

{table}
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    return Section(
        title="Leases that report as they go",
        text=fill_text(
            _TEXT,
            table=build_table(["case", "before", "now", "commit"], [_build_row(row) for row in results.rows]),
        ),
        goals=[
            Goal(text=f"{row.text}: {row.goal}", result=row.finding.text, is_met=row.finding.is_met)
            for row in results.rows
        ],
        packages=("aiohttp", "uvloop", "celery"),
    )


def _build_row(row: Row) -> list[str]:
    return [
        f"{row.case}: {row.text}",
        row.baseline.text if row.baseline else NONE,
        row.finding.text,
        row.commit,
    ]
