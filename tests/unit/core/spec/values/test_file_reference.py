import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.file_claims import build_claim

from oku_core.spec.values.file_reference import (
    CodeFile,
    FileClaim,
    FileHash,
    FileRef,
    describe_file,
    find_file_reference,
    is_code_path,
    is_digest,
    parse_code_files,
)

DIGEST = "ab" * 32


@given(st.text(), st.integers(0, 10**15 - 1))
def test_any_name_of_a_file_makes_a_reference(name: str, size: int) -> None:
    """Characters that would leave the line, or look like a folder, are replaced."""
    reference = FileRef.build(DIGEST, size, name)
    assert FileRef(str(reference)) == reference
    assert find_file_reference(str(reference)) == reference
    assert reference.size == size
    assert reference.name.isprintable()
    assert "/" not in reference.name


def test_what_begins_like_a_reference_has_to_be_one() -> None:
    """It would else be taken for a path, or be sent as a body."""
    for text in [
        "@sha256:",
        f"@sha256:{DIGEST}",
        f"@sha256:{DIGEST}:x:n",
        f"@sha256:{DIGEST}:1:a/b",
        "@sha256:AB",
    ]:
        with pytest.raises(ValueError, match="is not of the form @sha256:DIGEST:SIZE:NAME"):
            find_file_reference(text)
    cases: list[str | None] = [None, "", "/certs/ca.pem", "@ca.pem", "sha256:ab"]
    for other in cases:
        # Other texts name no file of a run. They are paths, or texts of their own.
        assert find_file_reference(other) is None


CONTENT = b"what is in a file"


def test_a_reference_says_what_is_in_a_file_and_a_proof_is_an_hmac() -> None:
    """Its parts are read from its text, and a name may have colons."""
    reference = FileRef(f"@sha256:{DIGEST}:12:a:b.pem")
    assert (reference.digest, reference.size, reference.name) == (DIGEST, 12, "a:b.pem")
    assert describe_file(reference) == "@a:b.pem"
    assert describe_file("/certs/ca.pem") == "/certs/ca.pem"
    # A digest is in lower case and whole. So it can be the name of a file.
    assert is_digest(DIGEST)
    assert not any(map(is_digest, ("", DIGEST.upper(), DIGEST[:-1], f"{DIGEST}\n", f"../{DIGEST}")))
    # A proof is an hmac that other programs make too.
    digest, proof = build_claim(CONTENT)
    assert digest == hashlib.sha256(CONTENT).hexdigest()
    assert proof == "8bd691913392d3b0b3c23206604a65fc251292dd45186c566013fd242392425b"
    # Pieces make the same claim as the whole. Also an empty file has one.
    found = FileHash()
    for piece in (CONTENT[:5], b"", CONTENT[5:]):
        found.update(piece)
    assert found.claim == build_claim(CONTENT)
    assert FileHash().claim == build_claim(b"")
    # What is no claim is refused without showing it. A proof that is nearly right may be someone's.
    digest, proof = build_claim(CONTENT)
    assert FileClaim.read(digest, proof) == build_claim(CONTENT)
    for wrong in ("", proof.upper(), proof[:-1], f"{proof}0", f"{proof}\n", None, 7, [proof]):
        with pytest.raises(
            ValueError, match=rf"^the proof of {digest} is not an HMAC-SHA-256 in hexadecimal$"
        ):
            FileClaim.read(digest, wrong)
    with pytest.raises(ValueError, match=r"^abc is not a SHA-256 in hexadecimal$"):
        FileClaim.read("abc", proof)


CODE_DIGEST = "0" * 64


def test_a_path_stays_in_its_folder() -> None:
    """It may have folders."""
    for path in ["a.py", "lib/a.py", "größe.txt", "a b", "..a/b.."]:
        assert is_code_path(path)
    for path in [
        "",
        "/a",
        "../a",
        "a/../b",
        ".",
        "./a",
        "a/",
        "a//b",
        "a\nb",
        "a\0",
        "a\udcff",
        "a@sha256:b",
        "a" * 401,
    ]:
        # Any other path is refused. It would lead elsewhere, or could not be written down.
        assert not is_code_path(path)
        with pytest.raises(ValueError, match=r"is not of the form"):
            CodeFile(f"{path}@sha256:{CODE_DIGEST}:3:a")
    for name in ["a.py", "a@sha256:b.py", "@sha256:"]:
        # A file is read as it was built. Whatever the user calls it.
        built = CodeFile.build("lib/a.py", FileRef.build(CODE_DIGEST, 3, name))
        again = CodeFile(str(built))
        assert (again.path, again.file.digest, again.file.name) == ("lib/a.py", CODE_DIGEST, name)
    # Two files cannot have one path. One of them would be lost.
    with pytest.raises(ValueError, match="two files have the same path"):
        parse_code_files([f"a@sha256:{CODE_DIGEST}:3:a", f"a@sha256:{'1' * 64}:3:a"])
