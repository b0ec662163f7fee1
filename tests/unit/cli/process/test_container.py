from pathlib import Path

import pytest

from oku_cli.process import container
from oku_cli.process.container import describe_resume, find_volume

MOUNTED = Path("/proc/self")
"""A folder of a file system that is mounted on every Linux."""


def test_a_folder_lies_on_the_mount_that_is_next_above_it() -> None:
    """What lies on no other mount lies on the root file system, which is the container's own."""
    assert find_volume(MOUNTED) == Path("/proc")
    assert find_volume(Path("/proc/not there/yet")) == Path("/proc")
    assert find_volume(Path("/not there/yet")) is None


@pytest.mark.parametrize(
    ("variables", "folder", "hint"),
    [
        ({}, Path("/not there"), "resume it with: oku resume r"),
        (
            {container.VARIABLE: "true"},
            MOUNTED,
            "resume it with: oku resume r (same volume at /proc)",
        ),
        (
            {container.VARIABLE: "true"},
            Path("/not there"),
            "its data goes with this container; to keep runs: docker run -v oku:/data",
        ),
    ],
)
def test_a_run_in_a_container_can_be_resumed_with_its_volume_only(
    variables: dict[str, str], folder: Path, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image says that it is one, and the folder whether there is a volume."""
    monkeypatch.delenv(container.VARIABLE, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert describe_resume("oku resume r", folder) == hint


def test_a_mount_may_have_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel escapes blanks, line breaks and backslashes; all other bytes stand as they are."""
    names = {
        "a b": b"a\\040b",
        "c\nd#": b"c\\012d\\043",
        "\udcff": b"\xff",
        "\u2028\xa0": "\u2028\xa0".encode(),
    }
    for name, written in names.items():
        line = b"1 2 8:1 / /%b rw - ext4 /dev/sda rw\n" % written
        monkeypatch.setattr("pathlib.Path.read_bytes", lambda _, line=line: line)
        assert find_volume(Path("/", name, "folder")) == Path("/", name)
