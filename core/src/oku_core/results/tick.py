"""What those who follow a run are told each second."""

import msgspec

from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a run.

    Attributes:
        run: the id of the run.
        state: the state of the run.
        notices: what the run is waiting for and what is going wrong, one line each.
        sample: the load of this second, merged over all workers.
    """

    run: str
    state: RunState
    notices: list[str] = []
    sample: Sample
