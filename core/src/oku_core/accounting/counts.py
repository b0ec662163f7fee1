"""Counts and times of some requests: the one shape that parts of leases, seconds and accounts share.

`Counts` is a value: it is sent, kept and compared. Many of them sum up in an `Account`. The hot path of a
worker counts in arrays and makes a `Counts` when a checkpoint is due.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from oku_core.accounting.histogram import HistogramSnapshot, coarsen, subtract
from oku_core.accounting.measured_time import Time, find_time_fault
from oku_core.accounting.outcome import (
    LOST,
    NOT_DEALT,
    NOT_SENT,
    NOT_SENT_CAUSES,
    ReasonCount,
    build_no_causes,
    build_no_counts,
    count_answered,
    find_reason_fault,
    is_account,
)

FIGURE_LIMIT = 2**53
"""Sums of figures below this limit still fit the 64-bit integers of the ledger."""
# Servers may send any number of up to three digits as a status.
_STATUS = re.compile(r"[0-9]{1,3}")
_NONE = HistogramSnapshot()


class LiveCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What some requests came to, as far as it is followed second by second.

    Attributes:
        outcomes: the counts of outcomes in the order of `OUTCOMES`.
        bytes_received: the number of bytes in response bodies.
        times: the distribution of each time that was measured; one that is missing is empty.
    """

    outcomes: list[int] = msgspec.field(default_factory=build_no_counts)
    bytes_received: int = 0
    times: dict[Time, HistogramSnapshot] = {}

    def histogram(self, time: Time) -> HistogramSnapshot:
        """The distribution of a time; empty if none was measured."""
        return self.times.get(time, _NONE)


class Counts(LiveCounts, frozen=True, kw_only=True, omit_defaults=True):
    """What some requests came to, and why.

    Attributes:
        not_sent: the counts of the causes for which requests were not sent, in the order of
            `NOT_SENT_CAUSES`.
        statuses: the number of responses by status code.
        reasons: why requests failed, with the first and last position of each reason; they sum to the
            outcomes other than `ok`.
    """

    not_sent: list[int] = msgspec.field(default_factory=build_no_causes)
    statuses: dict[str, int] = {}
    reasons: list[ReasonCount] = []

    def find_fault(self) -> str | None:
        """Find why a worker cannot have counted this; None if it can."""
        return (
            self.find_count_fault()
            or _find_cause_fault(self)
            or _find_status_fault(self)
            or next((fault for each in self.times.values() if (fault := each.find_fault())), None)
            or find_time_fault(self.times, self.outcomes)
            or _find_split_fault(self)
            or find_reason_fault(self.reasons, self.outcomes)
        )

    def find_count_fault(self) -> str | None:
        """Find the plain figure that is no count; None if all are counts."""
        if not is_account(self.outcomes):
            return "the outcomes are not a count for each"
        if not 0 <= self.bytes_received < FIGURE_LIMIT:
            return f"bytes_received is {self.bytes_received}"
        return None

    def subtract(self, earlier: "Counts") -> "Counts":
        """Return the counts gained since an earlier state; reasons keep the first and last position of all.

        Raises:
            ValueError: this state does not contain the earlier one.
        """
        if self.bytes_received < earlier.bytes_received:
            raise ValueError("fewer bytes were received than before")
        return Counts(
            outcomes=subtract_counts(self.outcomes, earlier.outcomes, "the outcomes"),
            not_sent=subtract_counts(self.not_sent, earlier.not_sent, "the causes for not sending"),
            statuses=_subtract_statuses(self.statuses, earlier.statuses),
            bytes_received=self.bytes_received - earlier.bytes_received,
            reasons=_subtract_reasons(self.reasons, earlier.reasons),
            times=_subtract_times(self.times, earlier.times),
        )


def coarsen_times(times: Mapping[Time, HistogramSnapshot]) -> dict[Time, HistogramSnapshot]:
    """The same distributions, known to 1 part in 32 (`coarsen`)."""
    return {time: coarsen(histogram) for time, histogram in times.items()}


def subtract_counts(later: Sequence[int], earlier: Sequence[int], what: str) -> list[int]:
    """The differences of counts; `ValueError` if one has fallen."""
    grown = [new - old for old, new in zip(earlier, later, strict=True)]
    if min(grown) < 0:
        raise ValueError(f"{what} counted {list(earlier)} before and {list(later)} now")
    return grown


def _subtract_statuses(later: Mapping[str, int], earlier: Mapping[str, int]) -> dict[str, int]:
    if not earlier.keys() <= later.keys():
        raise ValueError("a status has gone")
    grown = {status: count - earlier.get(status, 0) for status, count in later.items()}
    if min(grown.values(), default=0) < 0:
        raise ValueError("a status has been counted less often than before")
    return {status: count for status, count in grown.items() if count}


def _subtract_reasons(later: Sequence[ReasonCount], earlier: Sequence[ReasonCount]) -> list[ReasonCount]:
    if not later and not earlier:
        return []
    counted = {count.key: count for count in earlier}
    grown: list[ReasonCount] = []
    for count in later:
        was = counted.pop(count.key, None)
        if was is None:
            grown.append(count)
        elif count.requests < was.requests or count.first > was.first or count.last < was.last:
            raise ValueError(f"the reason {count.reason!r} had {was.requests} and has {count.requests}")
        elif count.requests > was.requests:
            grown.append(msgspec.structs.replace(count, requests=count.requests - was.requests))
    if counted:
        raise ValueError("a reason has gone")
    return grown


def _subtract_times(
    later: Mapping[Time, HistogramSnapshot], earlier: Mapping[Time, HistogramSnapshot]
) -> dict[Time, HistogramSnapshot]:
    grown: dict[Time, HistogramSnapshot] = {}
    for time in (*later, *(time for time in earlier if time not in later)):
        try:
            added = subtract(later.get(time, _NONE), earlier.get(time, _NONE))
        except ValueError as error:
            raise ValueError(f"{time} does not contain what it did: {error}") from error
        if added.buckets:
            grown[time] = added
    return grown


def _find_cause_fault(counts: Counts) -> str | None:
    if len(counts.not_sent) != len(NOT_SENT_CAUSES) or min(counts.not_sent) < 0:
        return "the causes for not sending are not a count for each"
    if sum(counts.not_sent) != counts.outcomes[NOT_SENT]:
        return f"{counts.outcomes[NOT_SENT]} are not sent, but the causes sum to {sum(counts.not_sent)}"
    if counts.outcomes[LOST] or counts.not_sent[NOT_DEALT]:
        return "only the coordinator knows what is lost, and what no worker had"
    return None


def _find_status_fault(counts: Counts) -> str | None:
    answered = count_answered(counts.outcomes)
    for status, count in counts.statuses.items():
        if not _STATUS.fullmatch(status) or count <= 0:
            return f"{count} responses have the status {status!r}"
    if sum(counts.statuses.values()) > answered:
        return f"there are more statuses than the {answered} answered"
    return None


def _find_split_fault(counts: Counts) -> str | None:
    """The latencies of split answers are among all."""
    if Time.SPLIT_LATENCY not in counts.times:
        return None
    try:
        subtract(counts.histogram(Time.LATENCY), counts.times[Time.SPLIT_LATENCY])
    except ValueError as error:
        return f"the latencies of split answers are not among all: {error}"
    return None
