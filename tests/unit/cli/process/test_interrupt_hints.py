import pytest

from oku_cli.process.interrupt import SignalAction
from oku_cli.process.interrupt_hints import Delivery, InterruptHints, build_hint

HERE = InterruptHints(["--data-dir", "d"])
ELSEWHERE = InterruptHints(["--kube"], outlives=True)


@pytest.fixture(autouse=True)
def called_as_oku(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is called by its own name."""
    monkeypatch.delenv("OKU_COMMAND", raising=False)


def test_a_hint_names_the_command_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """`./task` names it in a variable."""
    assert build_hint("resume", "r") == "oku resume r"
    monkeypatch.setenv("OKU_COMMAND", "./task oku")
    assert build_hint("resume", "r") == "./task oku resume r"


def test_a_command_to_type_names_the_place() -> None:
    """The command can be typed as it stands."""
    assert HERE.build_command("resume", "r") == "oku resume r --data-dir d"
    assert ELSEWHERE.build_command("show", "r") == "oku show r --kube"
    assert InterruptHints().build_command("resume", "r") == "oku resume r"


@pytest.mark.parametrize("delivery", Delivery)
def test_a_run_of_this_machine_is_stopped_at_once(delivery: Delivery) -> None:
    """Its stack ends with the command, whatever the coordinator has answered."""
    assert HERE.describe_first("r").endswith("Ctrl-C again stops at once")
    assert HERE.describe_second("r", delivery) == "stopped at once"


def test_a_remote_run_is_not_said_to_be_stopped() -> None:
    """It comes to rest if the pause was accepted; if not, it continues and the line says how to pause it."""
    assert ELSEWHERE.describe_first("r") == (
        "pausing run r: what is in flight may finish; Ctrl-C again does not wait for them"
    )
    assert ELSEWHERE.describe_second("r", Delivery.ACCEPTED) == (
        "run r is being paused and comes to rest by itself; look at it with: oku show r --kube; "
        "resume it with: oku resume r --kube"
    )
    assert ELSEWHERE.describe_second("r", Delivery.OPEN) == (
        "run r goes on: its coordinator could not be told to pause it; pause it with: oku pause r --kube"
    )
    assert ELSEWHERE.describe_second("r", Delivery.REFUSED) == (
        "run r was not paused by this command; look at it with: oku show r --kube"
    )


def test_a_run_that_is_cancelled_is_not_resumed() -> None:
    """Nothing that is said of it names a pause."""
    cancel = SignalAction.CANCEL
    assert HERE.describe_first("r", cancel) == (
        "cancelling: what is in flight may finish; Ctrl-C again stops at once"
    )
    assert HERE.describe_second("r", Delivery.OPEN, action=cancel) == "stopped at once"
    assert ELSEWHERE.describe_first("r", cancel) == (
        "cancelling run r: what is in flight may finish; Ctrl-C again does not wait for them"
    )
    assert ELSEWHERE.describe_second("r", Delivery.ACCEPTED, action=cancel) == (
        "run r is being cancelled and comes to rest by itself; look at it with: oku show r --kube"
    )
    assert ELSEWHERE.describe_second("r", Delivery.OPEN, "no broker", cancel) == (
        "run r goes on: its coordinator could not be told to cancel it; "
        "cancel it with: oku cancel r --kube (no broker)"
    )
    assert ELSEWHERE.describe_second("r", Delivery.REFUSED, action=cancel) == (
        "run r was not cancelled by this command; look at it with: oku show r --kube"
    )


def test_a_run_that_goes_on_alone_can_be_waited_for() -> None:
    """The command can be typed as it stands."""
    assert ELSEWHERE.describe_detached("r") == "run r goes on; wait for it with: oku wait r --kube"
