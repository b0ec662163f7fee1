from pathlib import Path

from tests.kit.file_claims import build_claim

from oku_coordinator.files.file_name import FileName, find_stored_file, read_name

CLAIM = build_claim(b"what is in a file")


def test_a_name_says_what_a_file_is() -> None:
    """Whole or a part, with its proof."""
    for is_part in (False, True):
        name = FileName(CLAIM, is_part)
        assert read_name(str(name)) == name
    for text in (
        "",
        "notes.txt",
        "0" * 63,
        CLAIM.digest,
        f"{CLAIM.digest}.",
        f"{CLAIM.digest}.x",
        f".{CLAIM.proof}",
        ".part",
    ):
        assert read_name(text) is None, text


def test_a_file_is_found_by_its_digest(tmp_path: Path) -> None:
    """A part is none, and what else begins like it is not looked at."""
    assert find_stored_file(tmp_path, CLAIM.digest) is None
    for name in (FileName(CLAIM, is_part=True), f"{CLAIM.digest}.old"):
        (tmp_path / str(name)).touch()
    assert find_stored_file(tmp_path / "none", CLAIM.digest) is None
    assert find_stored_file(tmp_path, CLAIM.digest) is None
    path = tmp_path / str(FileName(CLAIM))
    path.touch()
    assert find_stored_file(tmp_path, CLAIM.digest) == path
