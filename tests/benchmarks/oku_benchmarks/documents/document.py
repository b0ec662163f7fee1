"""The file of a benchmark: what was measured, with what, where and when. One JSON document each."""

from pathlib import Path
from typing import TypeVar

import msgspec

from oku_benchmarks.measuring.machine import Machine

_T = TypeVar("_T")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One measured benchmark; `results` is the `Results` of its module."""

    benchmark: str
    command: str
    measured_at: str
    took_s: float
    commit: str
    machine: Machine
    versions: dict[str, str]
    results: msgspec.Raw

    def read_results(self, kind: type[_T]) -> _T:
        """The results as the type that was written."""
        return msgspec.json.decode(self.results, type=kind)


def encode_results(results: msgspec.Struct) -> msgspec.Raw:
    """Results as they stand in a document."""
    return msgspec.Raw(msgspec.json.encode(results))


def write_document(folder: Path, document: Document) -> Path:
    """Write `NAME.json` into `folder`; the path of it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document.benchmark}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    return path


def read_documents(folder: Path) -> dict[str, Document]:
    """All documents of `folder`, by benchmark."""
    # Beside them lie summaries, whose names have a further dot.
    paths = (path for path in sorted(folder.glob("*.json")) if "." not in path.stem)
    documents = (msgspec.json.decode(path.read_bytes(), type=Document) for path in paths)
    return {document.benchmark: document for document in documents}
