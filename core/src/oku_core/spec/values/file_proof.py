"""Proves that a caller has a file: by a second digest, with a key, which no spec, report or answer shows.

The digest of a file names it wherever its run is described, so anyone who may look at runs knows it. Only
someone who has the content can compute the proof. The key is no secret: it makes the proof another value than
any digest that others publish.
"""

import hashlib
import hmac
from typing import NamedTuple, Self

from oku_core.errors import format_value
from oku_core.spec.values.file_reference import is_digest

PROOF_HEADER = "Oku-File-Proof"
"""Has the proof in calls about one file; a call that submits a run has it in its body, as `PROOFS`."""
PROOFS = "proofs"
PROOF_KEY = b"oku-file-proof"


class FileClaim(NamedTuple):
    """What a caller knows of a file.

    Attributes:
        digest: the SHA-256 of its content, in hexadecimal.
        proof: the HMAC-SHA-256 of its content with `PROOF_KEY`, in hexadecimal.
    """

    digest: str
    proof: str

    @classmethod
    def read(cls, digest: str, proof: object) -> Self:
        """A claim as a caller gives it; raise `ValueError` if it is none, without showing the proof."""
        if not is_digest(digest):
            raise ValueError(f"{format_value(digest)} is not a SHA-256 in hexadecimal")
        if not isinstance(proof, str) or not is_digest(proof):
            raise ValueError(f"the proof of {digest} is not an HMAC-SHA-256 in hexadecimal")
        return cls(digest, proof)


class FileHash:
    """Reads a file piece by piece for digest and proof."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._proof = hmac.new(PROOF_KEY, digestmod="sha256")

    def update(self, piece: bytes) -> None:
        """The next piece of the content."""
        self._digest.update(piece)
        self._proof.update(piece)

    @property
    def claim(self) -> FileClaim:
        """Digest and proof of what came so far."""
        return FileClaim(self._digest.hexdigest(), self._proof.hexdigest())
