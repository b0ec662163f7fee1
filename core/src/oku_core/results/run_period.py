"""The periods in which the clock of a run ran, as its history tells them."""

import msgspec


class RunPeriod(msgspec.Struct, frozen=True):
    """A time in which a run was active; before the next one, its clock stood still.

    Attributes:
        starts_at: the Unix time at which it starts.
        offset_s: what the run's clock says then. It may be less than at the end of the period before:
            requests that were in flight then are due again.
        stop_s: what it says at the end; None while that is not known.
    """

    starts_at: float
    offset_s: float
    stop_s: float | None = None
