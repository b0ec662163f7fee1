"""The times that are measured of requests, and how often each of them occurs.

Most answers arrive in one piece: their first byte comes with the last one. So nothing is recorded for them
beside their latency, and three distributions describe the split answers alone. From these the first bytes of
all answers follow, for histograms add and subtract exactly.

A new time is a member of `Time` here, and the code that records it. Checkpoints, accounts and the ledger
carry all members.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from oku_core.accounting.outcome import count_answered, count_sent


class Time(StrEnum):
    """A time that is measured of requests, under its name on the wire, in the ledger and in figures."""

    LATENCY = "latency"
    """From sending to the last byte of the answer, connecting included; of all that were answered in full."""
    RESPONSE_TIME = "response_time"
    """From when the request was due to the last byte; of the same requests."""
    LATENESS = "lateness"
    """From when the request was due to sending; of all that were sent and have ended."""
    CONNECT = "connect"
    """TCP of new connections, without looking a name up: that serves many. A kept connection counts once,
    with its first request, and also if that one was not answered."""
    TLS = "tls"
    """The TLS handshake of new connections."""
    SPLIT_LATENCY = "split_latency"
    """The latency of split answers, which arrived in several pieces."""
    SPLIT_FIRST_BYTE = "split_first_byte"
    """From sending to the first byte, of split answers."""
    TRANSFER = "transfer"
    """From the first to the last byte, of split answers."""

    @property
    def label(self) -> str:
        """What it is called in a sentence."""
        return self.replace("_", " ")

    @property
    def figure_prefix(self) -> str:
        """What the names of its figures begin with; a latency is meant where none is named."""
        return "" if self is Time.LATENCY else f"{self}_"


DUE_TIMES = (Time.RESPONSE_TIME, Time.LATENESS)
"""Those from when requests were due: closed runs have none of them."""
LIVE_TIMES = (Time.LATENCY, *DUE_TIMES)
"""Those that are followed second by second, shown by target, and compared by thresholds."""
_COUNTS: Mapping[Time, Callable[[Sequence[int]], int]] = {
    Time.LATENCY: count_answered,
    Time.RESPONSE_TIME: count_answered,
    Time.LATENESS: count_sent,
}


class Times(Protocol):
    """How long some requests took: a histogram."""

    @property
    def total(self) -> int:
        """How many there are."""

    @property
    def sum_us(self) -> int:
        """Their exact sum in µs."""


def find_time_fault(
    times: Mapping[Time, Times], outcomes: Sequence[int], *, is_open: bool | None = None
) -> str | None:
    """Find a time that occurs more or less often than it must; None if all agree with the outcomes.

    Args:
        times: the measured ones; the others are empty.
        outcomes: of the requests, in the order of `OUTCOMES`.
        is_open: whether the requests have due times; if unknown, they have as soon as one is measured.
    """
    totals = {time: histogram.total for time, histogram in times.items()}
    if is_open is None:
        is_open = any(totals.get(time) for time in DUE_TIMES)
    for time, count in _COUNTS.items():
        found, expected = totals.get(time, 0), count(outcomes) if is_open or time not in DUE_TIMES else 0
        if found != expected:
            return f"{found} have a {time.label}, but {expected} must have one"
    return _find_step_fault(times, totals, count_answered(outcomes))


def _find_step_fault(times: Mapping[Time, Times], totals: Mapping[Time, int], answered: int) -> str | None:
    """The steps of connecting and answering: each has as many as the step before it, or fewer."""
    connections, handshakes = totals.get(Time.CONNECT, 0), totals.get(Time.TLS, 0)
    if handshakes > connections:
        return f"{handshakes} connections have agreed on TLS, but {connections} were made"
    steps = Time.SPLIT_LATENCY, Time.SPLIT_FIRST_BYTE, Time.TRANSFER
    latencies, first_bytes, transfers = (totals.get(time, 0) for time in steps)
    if not latencies == first_bytes == transfers <= answered:
        return (
            f"of {answered} answers, {latencies} were split, but {first_bytes} have a first byte"
            f" and {transfers} a transfer"
        )
    latency_us, first_byte_us, transfer_us = (times[time].sum_us if time in times else 0 for time in steps)
    if latency_us != first_byte_us + transfer_us:
        return (
            f"split answers took {latency_us} µs, but their first bytes {first_byte_us} µs"
            f" and their transfers {transfer_us} µs"
        )
    return None
