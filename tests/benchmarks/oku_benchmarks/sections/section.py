"""What the sections of docs/benchmarks.md are made of: Markdown, and goals with what came of them."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oku_benchmarks.documents.document import Document

NONE = "–"  # noqa: RUF001  # typography
"""What stands in a table where there is no figure."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What was to be reached, and what was.

    Args:
        text: the goal.
        result: the figure, with its unit.
        is_met: whether it is as good as the goal.
    """

    text: str
    result: str
    is_met: bool


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of the page.

    Args:
        title: its heading.
        text: what stands under it, as Markdown.
        goals: for the table at the top of the page.
        packages: whose versions matter here, beside Python's.
    """

    title: str
    text: str
    goals: Sequence[Goal]
    packages: Sequence[str]


def fill_text(template: str, **values: object) -> str:
    """A template with its values in place and its paragraphs wrapped; tables and images stay as they are."""
    blocks = template.format(**values).strip().split("\n\n")
    return "\n\n".join(
        block if block.startswith(("|", "![")) else textwrap.fill(block, 110, break_on_hyphens=False)
        for block in blocks
    )


def build_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; all columns but the first are figures."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def build_source(document: Document, packages: Sequence[str]) -> str:
    """With what, where and when the figures of a section were measured."""
    machine, versions = document.machine, document.versions
    memory = f", {machine.memory_gb:g} GB" if machine.memory_gb else ""
    names = ("python", *(["extension"] if "extension" in versions else []), *packages)
    named = ", ".join(f"{package} {versions.get(package, 'missing')}" for package in names)
    return textwrap.fill(
        f"Measured on {document.measured_at} in {document.took_s / 60:.1f} min with `{document.command}`."
        f" Machine: {machine.cpu}, {machine.cores} cores{memory}, {machine.system},"
        f" load before {machine.load_before:g}. Versions: Oku at {document.commit}, {named}."
        f" Raw numbers: [{document.benchmark}.json](benchmarks/{document.benchmark}.json).",
        110,
        break_on_hyphens=False,
    )
