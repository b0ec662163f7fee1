import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.values.file_reference import FileRef, describe_file, find_file_reference, is_digest

DIGEST = "ab" * 32


def test_a_reference_says_what_is_in_a_file_and_what_people_call_it() -> None:
    """Its parts are read from its text, and a name may have colons."""
    reference = FileRef(f"@sha256:{DIGEST}:12:a:b.pem")
    assert (reference.digest, reference.size, reference.name) == (DIGEST, 12, "a:b.pem")
    assert describe_file(reference) == "@a:b.pem"
    assert describe_file("/certs/ca.pem") == "/certs/ca.pem"


@given(st.text(), st.integers(0, 10**15 - 1))
def test_any_name_of_a_file_makes_a_reference(name: str, size: int) -> None:
    """Characters that would leave the line, or look like a folder, are replaced."""
    reference = FileRef.build(DIGEST, size, name)
    assert FileRef(str(reference)) == reference
    assert find_file_reference(str(reference)) == reference
    assert reference.size == size
    assert reference.name.isprintable()
    assert "/" not in reference.name


@pytest.mark.parametrize("text", [None, "", "/certs/ca.pem", "@ca.pem", "sha256:ab"])
def test_other_texts_name_no_file_of_a_run(text: str | None) -> None:
    """They are paths, or texts of their own."""
    assert find_file_reference(text) is None


@pytest.mark.parametrize(
    "text",
    ["@sha256:", f"@sha256:{DIGEST}", f"@sha256:{DIGEST}:x:n", f"@sha256:{DIGEST}:1:a/b", "@sha256:AB"],
)
def test_what_begins_like_a_reference_has_to_be_one(text: str) -> None:
    """It would else be taken for a path, or be sent as a body."""
    with pytest.raises(ValueError, match="is not of the form @sha256:DIGEST:SIZE:NAME"):
        find_file_reference(text)


def test_a_digest_is_in_lower_case_and_whole() -> None:
    """So it can be the name of a file."""
    assert is_digest(DIGEST)
    assert not any(map(is_digest, ("", DIGEST.upper(), DIGEST[:-1], f"{DIGEST}\n", f"../{DIGEST}")))
