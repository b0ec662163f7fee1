import pytest

from oku_cli.views.hook_view import build_hooks, describe_hook
from oku_core.results.hook_summary import HookState, HookSummary
from oku_core.spec.spec import Hook


@pytest.mark.parametrize(
    ("state", "calls", "took_s", "text"),
    [
        (HookState.DONE, 1, 1.25, "setup took 1.2 s"),
        (HookState.DONE, 2, 0.5, "setup took 500 ms, called 2 times"),
        (HookState.FAILED, 1, 3.0, "setup failed after 3.0 s"),
        (HookState.BEGUN, 1, None, "setup is being called"),
        (HookState.LOST, 2, None, "setup is to be called again, called 2 times"),
        (HookState.OWED, 0, None, "setup is to be called"),
        (HookState.GIVEN_UP, 1, None, "setup was given up"),
    ],
)
def test_a_hook_is_told_in_a_line(state: HookState, calls: int, took_s: float | None, text: str) -> None:
    """With how long it took, and how often it was called if that was more than once."""
    hook = HookSummary(hook=Hook.SETUP, state=state, calls=calls, worker="w1", took_s=took_s)
    assert describe_hook(hook) == text


def test_the_traceback_of_a_failed_hook_is_shown_without_what_a_terminal_obeys() -> None:
    """User code may raise anything."""
    hook = HookSummary(
        hook=Hook.SETUP,
        state=HookState.FAILED,
        calls=1,
        worker="w1",
        took_s=0.0,
        traceback="Traceback (most recent call last):\nValueError: \x1b[31mred\n",
    )
    lines = [str(line) for line in build_hooks([hook])]
    assert len(lines) == 3
    assert "\x1b" not in "".join(lines)
