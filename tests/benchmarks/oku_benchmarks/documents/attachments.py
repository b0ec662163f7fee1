"""What a benchmark leaves beside its numbers: pictures, and the summary of a run."""

from pathlib import Path

KEPT = "kept"


def open_kept(folder: Path) -> Path:
    """The folder in a benchmark's own folder whose files go to docs/benchmarks."""
    kept = folder / KEPT
    kept.mkdir(exist_ok=True)
    return kept


def move_kept(folder: Path, docs: Path) -> None:
    """Move what a benchmark left to where its numbers go."""
    docs.mkdir(parents=True, exist_ok=True)
    for path in open_kept(folder).iterdir():
        path.replace(docs / path.name)
