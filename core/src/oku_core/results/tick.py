"""What those who follow a run are told each second."""

import msgspec

from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a run.

    Attributes:
        run: its id.
        state: in which the run is.
        notices: what the run waits for, and what does not go as it should, a line each.
        sample: the load of this second, merged over all workers.
    """

    run: str
    state: RunState
    notices: list[str] = []
    sample: Sample
