"""Shows what became of `setup` and `teardown` of a run."""

from collections.abc import Iterable, Iterator

from rich.text import Text

from oku_cli.terminal.palette import BAD, CAUTION
from oku_cli.terminal.printable import make_printable
from oku_core.results.hook_summary import HookState, HookSummary
from oku_core.spec.values.quantity import format_duration

_STATES = {
    HookState.OWED: "is to be called",
    HookState.BEGUN: "is being called",
    HookState.LOST: "is to be called again",
    HookState.DONE: "took",
    HookState.FAILED: "failed after",
    HookState.GIVEN_UP: "was given up",
}


def build_hooks(hooks: Iterable[HookSummary]) -> Iterator[Text]:
    """A line for each hook, and the traceback of one that failed."""
    for hook in hooks:
        yield Text(describe_hook(hook), style=_choose_style(hook))
        if hook.state is HookState.FAILED:
            for line in hook.traceback.splitlines():
                yield Text(f"  {make_printable(line)}")


def describe_hook(hook: HookSummary) -> str:
    """What became of a hook: `setup took 1.2 s, called 2 times`."""
    parts = [str(hook.hook), _STATES[hook.state]]
    if hook.took_s is not None:
        parts.append(format_duration(hook.took_s))
    called = f", called {hook.calls} times" if hook.calls > 1 else ""
    return " ".join(parts) + called


def _choose_style(hook: HookSummary) -> str:
    if hook.state is HookState.FAILED:
        return BAD
    return "" if hook.state is HookState.DONE else CAUTION
