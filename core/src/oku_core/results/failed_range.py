"""Which requests of a run failed, as the API tells it: ranges of indices, each with what became of them."""

from typing import Any

import msgspec

from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import RunState


class FailedRange(msgspec.Struct, frozen=True, kw_only=True):
    """The indices `start <= i < stop`, which all have one outcome and one target.

    `target` is empty if the spec names none. It is also empty for requests that the coordinator has accounted
    for by itself, as not dealt or lost: these may be of several targets, which follow from their indices.
    """

    start: int
    stop: int
    outcome: Outcome
    target: str = ""


class FailuresHead(msgspec.Struct, frozen=True, kw_only=True):
    """The head of the list of failed requests of a run.

    Attributes:
        run: its id.
        state: its state.
        requests: how many of its requests are accounted and not ok.
        unlisted: how many of them are in no range, because there were too many, or they were only counted.
        spec: its spec, under the names of the flags.
    """

    run: str
    state: RunState
    requests: int
    unlisted: int
    spec: dict[str, Any]
