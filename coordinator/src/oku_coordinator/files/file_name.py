"""The names of files of runs in the folder of a coordinator: digest and proof."""

from pathlib import Path
from typing import NamedTuple

from oku_core.spec.values.file_reference import FileClaim, is_digest

_PROOF_MARK, _PART = ".", ".part"


class FileName(NamedTuple):
    """The name of a file.

    Attributes:
        claim: its digest and its proof.
        is_part: whether more of it is to come.
    """

    claim: FileClaim
    is_part: bool = False

    def __str__(self) -> str:
        """The name in the folder."""
        return f"{_PROOF_MARK.join(self.claim)}{_PART if self.is_part else ''}"


def read_name(name: str) -> FileName | None:
    """Parse a name; None if it is not that of a file of a run."""
    whole = name.removesuffix(_PART)
    digest, _, proof = whole.partition(_PROOF_MARK)
    if not (is_digest(digest) and is_digest(proof)):
        return None
    return FileName(FileClaim(digest, proof), is_part=whole != name)


def find_stored_file(folder: Path, digest: str) -> Path | None:
    """The file with a digest in the folder of a coordinator that does not run; None if it is not there."""
    for path in folder.glob(f"{digest}*"):
        name = read_name(path.name)
        if name is not None and not name.is_part:
            return path
    return None
