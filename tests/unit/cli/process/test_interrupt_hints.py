from pathlib import Path

import pytest

from oku_cli.process import interrupt_hints
from oku_cli.process.interrupt import SignalAction
from oku_cli.process.interrupt_hints import (
    InterruptHints,
    OrderDelivery,
    build_hint,
    find_volume,
)

MOUNTED = Path("/proc/self")
"""A folder of a file system that is mounted on every Linux."""


@pytest.mark.parametrize(
    ("variables", "folder", "hint"),
    [
        ({}, Path("/not there"), "resume it with: oku resume r"),
        (
            {interrupt_hints.VARIABLE: "true"},
            MOUNTED,
            "resume it with: oku resume r (same volume at /proc)",
        ),
        (
            {interrupt_hints.VARIABLE: "true"},
            Path("/not there"),
            "its data goes with this container; to keep runs: docker run -v oku:/data",
        ),
    ],
)
def test_a_run_in_a_container_can_be_resumed_with_its_volume_only(
    variables: dict[str, str], folder: Path, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image says that it is one, and the folder whether there is a volume."""
    for name in (interrupt_hints.VARIABLE, "OKU_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert InterruptHints(folder=folder).describe_resume_command("r") == hint


def test_a_folder_lies_on_the_mount_that_is_next_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies on no other mount lies on the root file system, which is the container's own."""
    assert find_volume(MOUNTED) == Path("/proc")
    assert find_volume(Path("/proc/not there/yet")) == Path("/proc")
    assert find_volume(Path("/not there/yet")) is None
    # A mount may have any name.
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


HERE = InterruptHints(["--data-dir", "d"])
ELSEWHERE = InterruptHints(["--kube"], outlives=True)


@pytest.fixture(autouse=True)
def called_as_oku(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is called by its own name."""
    monkeypatch.delenv("OKU_COMMAND", raising=False)


def test_a_hint_names_the_command_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command can be typed as it stands."""
    assert HERE.build_command("resume", "r") == "oku resume r --data-dir d"
    assert ELSEWHERE.build_command("show", "r") == "oku show r --kube"
    assert InterruptHints().build_command("resume", "r") == "oku resume r"
    # A hint names the command as it was called. `./task` names it in a variable.
    assert build_hint("resume", "r") == "oku resume r"
    monkeypatch.setenv("OKU_COMMAND", "./task oku")
    assert build_hint("resume", "r") == "./task oku resume r"


@pytest.mark.parametrize("delivery", OrderDelivery)
def test_a_run_of_this_machine_is_stopped_at_once(delivery: OrderDelivery) -> None:
    """Its stack ends with the command, whatever the coordinator has answered."""
    assert HERE.describe_first("r").endswith("Ctrl-C again stops at once")
    assert HERE.describe_second("r", delivery) == "stopped at once"


def test_hints_say_what_happens_to_a_remote_run() -> None:
    """It comes to rest if the pause was accepted; if not, it continues and the line says how to pause it."""
    assert ELSEWHERE.describe_first("r") == (
        "pausing run r: what is in flight may finish; Ctrl-C again does not wait for them"
    )
    assert ELSEWHERE.describe_second("r", OrderDelivery.ACCEPTED) == (
        "run r is being paused and comes to rest by itself; look at it with: oku show r --kube; "
        "resume it with: oku resume r --kube"
    )
    assert ELSEWHERE.describe_second("r", OrderDelivery.OPEN) == (
        "run r goes on: its coordinator could not be told to pause it; pause it with: oku pause r --kube"
    )
    assert ELSEWHERE.describe_second("r", OrderDelivery.REFUSED) == (
        "run r was not paused by this command; look at it with: oku show r --kube"
    )
    # A run that is cancelled is not resumed. Nothing that is said of it names a pause.
    cancel = SignalAction.CANCEL
    assert HERE.describe_first("r", cancel) == (
        "cancelling: what is in flight may finish; Ctrl-C again stops at once"
    )
    assert HERE.describe_second("r", OrderDelivery.OPEN, action=cancel) == "stopped at once"
    assert ELSEWHERE.describe_first("r", cancel) == (
        "cancelling run r: what is in flight may finish; Ctrl-C again does not wait for them"
    )
    assert ELSEWHERE.describe_second("r", OrderDelivery.ACCEPTED, action=cancel) == (
        "run r is being cancelled and comes to rest by itself; look at it with: oku show r --kube"
    )
    assert ELSEWHERE.describe_second("r", OrderDelivery.OPEN, "no broker", cancel) == (
        "run r goes on: its coordinator could not be told to cancel it; "
        "cancel it with: oku cancel r --kube (no broker)"
    )
    assert ELSEWHERE.describe_second("r", OrderDelivery.REFUSED, action=cancel) == (
        "run r was not cancelled by this command; look at it with: oku show r --kube"
    )
    # A run that goes on alone can be waited for. The command can be typed as it stands.
    assert ELSEWHERE.describe_detached("r") == "run r goes on; wait for it with: oku wait r --kube"
