"""The fenced blocks of a document, each with the marks that say what a test does with it.

A mark is a comment above the block, which readers do not see: `<!-- MARK -->` or `<!-- MARK: VALUE -->`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_BLOCK = re.compile(
    r"^(?P<marks>(?:<!-- [^\n]* -->\n)*)```(?P<language>\w*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL
)
_MARK = re.compile(r"^<!-- ([^:\n]+?)(?:: (.+))? -->$", re.MULTILINE)


class Mark(StrEnum):
    """What a test does with a block; a block of shell without a mark is run to its end, line by line."""

    NOT_RUN = "not run"
    """It needs what a test does not have, or belongs to somebody else; the value is the reason."""
    EXIT_CODE = "exit code"
    """It ends with this exit code instead of 0."""
    BESIDE = "beside"
    """It is run beside this run of `oku`, as in another terminal."""
    TERMINALS = "terminals"
    """Each line but the last goes on, in a terminal of its own, until the page ends."""
    OUTPUT = "output"
    """It is what the block of shell before it prints; figures may differ, `…` stands for anything."""
    FILE = "file"
    """It is a file of this name, which later blocks of the page use."""
    VALUES = "values of the chart"
    """It is a part of a file of values."""
    MANIFESTS = "manifests"
    """They are objects of Kubernetes, which a test of the cluster applies."""
    REFUSED = "refused"
    """It is a spec that is wrong."""
    SUMMARY = "a summary"
    """It is the summary of a run."""


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: the document that it stands in.
        line: the number of its first line there.
        language: what stands behind the fence.
        content: its lines.
        marks: what stands in the comments above it.
    """

    page: Path
    line: int
    language: str
    content: str
    marks: Mapping[Mark, str]

    @property
    def place(self) -> str:
        """Where it stands, as an editor opens it."""
        return f"{self.page.name}:{self.line}"


def read_blocks(page: Path) -> Iterator[Block]:
    """The blocks of a document in their order; `ValueError` for a mark that does not exist."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("content")) + 1
        marks = {Mark(name): value for name, value in _MARK.findall(match["marks"])}
        yield Block(page, line, match["language"], match["content"], marks)
