import subprocess
import sys

import pytest
from docs.tools.version import VERSION, check, repeat


def test_oku_tells_the_version_of_its_project() -> None:
    """`oku --version` prints a constant, which `./task fix` writes."""
    command = [sys.executable, "-m", "oku_cli", "--version"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"oku {VERSION}\n"


def test_a_document_names_this_version_alone() -> None:
    """Other versions of other things, and plain history, are no faults."""
    for text in [
        "localhost/oku/oku:0.2.0",
        "oku/$part:0.2.0",
        "oku==0.2.0",
        "oku-0.2.0-py3-none-any.whl",
        "ledgers before 0.1.0",
        "k6:1.0.0",
    ]:
        assert list(check(text, "0.2.0")) == []
    for text in ["localhost/oku/oku:0.1.0", "oku/$part:0.1.0", "oku==0.1.0", "oku-0.1.0.tar.gz"]:
        # A document that names another version is found. An example that is copied must work.
        [fault] = check(text, "0.2.0")
        assert fault.endswith("is not of version 0.2.0")


def test_the_version_is_written_into_what_must_repeat_it() -> None:
    """The rest of the file stays as it is."""
    text = "name: oku\nversion: 0.1.0\nappVersion: 0.1.0\nkubeVersion: 1\n"
    written = repeat(text, r"^((?:version|appVersion): )\S+$", "0.2.0")
    assert written == "name: oku\nversion: 0.2.0\nappVersion: 0.2.0\nkubeVersion: 1\n"
    # A file without a place for the version is refused. A renamed key is noticed.
    with pytest.raises(ValueError, match="nothing matches"):
        repeat("name: oku\n", r"^(version: )\S+$", "0.2.0")
    # The newest release of the changelog is this version. What is not released yet may stand above it.
    text = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-01\n\n## [0.1.0] - 2026-12-01\n"
    assert list(check(text, "0.2.0", is_changelog=True)) == []
    assert list(check(text, "0.3.0", is_changelog=True)) == ["the newest release is 0.2.0, not 0.3.0"]
    assert list(check("# Changelog\n", "0.2.0", is_changelog=True)) == [
        "the newest release is missing, not 0.2.0"
    ]
