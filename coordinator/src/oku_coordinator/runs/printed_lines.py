"""The first lines that the user code of each run has printed, as its workers report them."""

from dataclasses import dataclass, field

from oku_core.messaging.printed import MOST_PRINTED_LINES, Printed, PrintedLine, PrintedSummary

_MOST_RUNS = 20
"""Older runs are forgotten."""
_MOST_PROCESSES = 1_000
"""Processes of workers of one run whose lines are counted."""


@dataclass
class _OfRun:
    lines: list[PrintedLine] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """By incarnation."""
    files: dict[str, str] = field(default_factory=dict)
    """By worker."""


class PrintedLines:
    """Collects reports, which may be repeated or come late; the lines of a run stay in their first order."""

    def __init__(self) -> None:
        self._runs: dict[str, _OfRun] = {}

    def record(self, worker: str, incarnation: str, printed: Printed) -> None:
        """Add the lines of a report that are new."""
        of_run = self._runs.get(printed.run)
        if of_run is None:
            of_run = self._runs[printed.run] = _OfRun()
            if len(self._runs) > _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
        known = of_run.counts.get(incarnation, 0)
        if printed.count <= known or (not known and len(of_run.counts) >= _MOST_PROCESSES):
            return
        of_run.counts[incarnation] = printed.count
        if printed.file:
            of_run.files[worker] = printed.file
        room = MOST_PRINTED_LINES - len(of_run.lines)
        of_run.lines += (PrintedLine(worker=worker, text=text) for text in printed.lines[known:][:room])

    def find(self, run: str) -> PrintedSummary | None:
        """What a run has printed; None if it has printed nothing, or long ago."""
        of_run = self._runs.get(run)
        if of_run is None:
            return None
        count = sum(of_run.counts.values())
        return PrintedSummary(lines=list(of_run.lines), count=count, files=dict(of_run.files))
