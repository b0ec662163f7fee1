"""A period of activity: the time between a start, or a resume, of a run and its next pause, or its end."""

import msgspec


class ActivePeriod(msgspec.Struct, frozen=True):
    """When the clock of a schedule runs.

    Attributes:
        starts_at: the Unix time, on the coordinator's clock, at which the period starts.
        offset_s: what the schedule's clock says at that moment.
    """

    starts_at: float
    offset_s: float

    def unix_time(self, schedule_s: float) -> float:
        """The Unix time, on the coordinator's clock, at which the schedule's clock says `schedule_s`."""
        return self.starts_at + (schedule_s - self.offset_s)

    def schedule_s(self, unix_time: float) -> float:
        """What the schedule's clock says at a Unix time of the coordinator's clock."""
        return self.offset_s + (unix_time - self.starts_at)
