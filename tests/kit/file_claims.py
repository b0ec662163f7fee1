"""What a caller knows of a file whose content is in memory."""

from pathlib import Path

from oku_coordinator.files.file_store import FileName
from oku_core.spec.values.file_reference import FileClaim, FileHash


def build_claim(content: bytes) -> FileClaim:
    """Digest and proof of a content."""
    found = FileHash()
    found.update(content)
    return found.claim


def name_by_claim(folder: Path) -> None:
    """Give all files of a folder the names that they have in that of a coordinator."""
    for path in list(folder.iterdir()):
        path.rename(folder / str(FileName(build_claim(path.read_bytes()))))
