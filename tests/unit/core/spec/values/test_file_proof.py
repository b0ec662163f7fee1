import hashlib

import pytest
from tests.kit.file_claims import build_claim

from oku_core.spec.values.file_proof import FileClaim, FileHash

CONTENT = b"what is in a file"


def test_a_proof_is_an_hmac_that_other_programs_make_too() -> None:
    """`openssl dgst -sha256 -hmac 'oku-file-proof'` writes this; the digest says nothing of it."""
    digest, proof = build_claim(CONTENT)
    assert digest == hashlib.sha256(CONTENT).hexdigest()
    assert proof == "8bd691913392d3b0b3c23206604a65fc251292dd45186c566013fd242392425b"


def test_pieces_make_the_same_claim_as_the_whole() -> None:
    """Also an empty file has one."""
    found = FileHash()
    for piece in (CONTENT[:5], b"", CONTENT[5:]):
        found.update(piece)
    assert found.claim == build_claim(CONTENT)
    assert FileHash().claim == build_claim(b"")


def test_what_is_no_claim_is_refused_without_showing_it() -> None:
    """A proof that is nearly right may be someone's."""
    digest, proof = build_claim(CONTENT)
    assert FileClaim.read(digest, proof) == build_claim(CONTENT)
    for wrong in ("", proof.upper(), proof[:-1], f"{proof}0", f"{proof}\n", None, 7, [proof]):
        with pytest.raises(
            ValueError, match=rf"^the proof of {digest} is not an HMAC-SHA-256 in hexadecimal$"
        ):
            FileClaim.read(digest, wrong)
    with pytest.raises(ValueError, match=r"^abc is not a SHA-256 in hexadecimal$"):
        FileClaim.read("abc", proof)
