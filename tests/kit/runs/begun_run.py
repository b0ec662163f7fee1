"""A run as a coordinator answers the call that begins it."""

from oku_cli.backends.client import BegunRun
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Engine


def build_begun(state: RunState = RunState.PENDING, run: str = "r1") -> BegunRun:
    """A run in this state, with the engine that most runs have."""
    return BegunRun(run=run, state=state, engine=Engine.HTTPTOOLS)
