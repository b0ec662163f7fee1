"""A running total of counts: what the requests of a phase and name, or of several, sum to."""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from oku_core.accounting.counts import Counts
from oku_core.accounting.histogram import Histogram, sum_histograms
from oku_core.accounting.interval import ConservationError
from oku_core.accounting.measured_time import Time, find_time_fault
from oku_core.accounting.outcome import (
    MOST_KEPT_REASONS,
    NOT_SENT,
    OTHER,
    ReasonCount,
    build_no_causes,
    build_no_counts,
    count_answered,
    find_sum_fault,
    sum_counts,
)

ReasonKey = tuple[int, str]
"""An outcome, as a place in `OUTCOMES`, and a reason for it."""
_NONE = Histogram()
"""Stands for a time that nothing was measured of; nothing is ever added to it."""


@dataclass(kw_only=True, slots=True)
class Account:
    """The totals of the requests of one phase and name, or of several; it has the fields of `Counts`.

    `times` has no entry for a time without measurements. Lists of counts are replaced, not changed.

    Attributes:
        totals: accounts of several that this one counts in: what it gains, they gain.
    """

    outcomes: list[int] = field(default_factory=build_no_counts)
    not_sent: list[int] = field(default_factory=build_no_causes)
    statuses: dict[str, int] = field(default_factory=dict)
    bytes_received: int = 0
    reasons: dict[ReasonKey, ReasonCount] = field(default_factory=dict)
    times: dict[Time, Histogram] = field(default_factory=dict)
    totals: tuple["Account", ...] = field(default=(), compare=False, repr=False)
    _frozen: "Account | None" = field(default=None, init=False, compare=False, repr=False)

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)

    def histogram(self, time: Time) -> Histogram:
        """The distribution of a time, to read only; empty if none was measured."""
        return self.times.get(time, _NONE)

    def add(self, gained: Counts) -> None:
        """Add gained counts; their reasons have indices."""
        if self._frozen is not None:
            self._frozen, self.times = None, self._copy_times()
        self.outcomes = list(map(operator.add, self.outcomes, gained.outcomes))
        self.not_sent = list(map(operator.add, self.not_sent, gained.not_sent))
        self.bytes_received += gained.bytes_received
        self.add_reasons(gained.statuses, gained.reasons)
        for time, histogram in gained.times.items():
            if histogram.buckets:
                self.times.setdefault(time, Histogram()).add(histogram)
        for total in self.totals:
            total.add(gained)

    def add_reasons(self, statuses: Mapping[str, int], reasons: Iterable[ReasonCount]) -> None:
        """Fold in the statuses of answers, and why requests failed."""
        for status, count in statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        for reason in reasons:
            self._add_reason(reason)

    def _add_reason(self, count: ReasonCount) -> None:
        known = self.reasons.get(count.key)
        if known is None and len(self.reasons) >= MOST_KEPT_REASONS:
            known = self.reasons.get((count.outcome, OTHER), ReasonCount(count.outcome, OTHER, 0))
        grown = count if known is None else known.join(count)
        self.reasons[grown.key] = grown

    def build_counts(self) -> Counts:
        """Return the same as a value; later additions do not change it."""
        return Counts(
            outcomes=list(self.outcomes),
            not_sent=list(self.not_sent),
            statuses=dict(self.statuses),
            bytes_received=self.bytes_received,
            reasons=[self.reasons[key] for key in sorted(self.reasons)],
            times={time: held.build_latency() for time, held in self.times.items() if held.total},
        )

    def freeze(self) -> "Account":
        """The same, to read only, and the same object until something is gained; that does not change it.

        Both have the same counts and histograms until then, so it takes next to no memory.
        """
        if self._frozen is None:
            self._frozen = self._duplicate(self.times)
        return self._frozen

    def copy(self) -> "Account":
        """A copy that goes its own way, and counts in no totals."""
        return self._duplicate(self._copy_times())

    def _copy_times(self) -> dict[Time, Histogram]:
        return {time: held.copy() for time, held in self.times.items()}

    def _duplicate(self, times: dict[Time, Histogram]) -> "Account":
        """Another account with the same figures, and with these histograms."""
        return Account(
            outcomes=self.outcomes,
            not_sent=self.not_sent,
            statuses=dict(self.statuses),
            bytes_received=self.bytes_received,
            reasons=dict(self.reasons),
            times=times,
        )

    def check(self, *, is_open: bool, has_statuses: bool = True) -> None:
        """Check the first law: times and statuses sum to the answered requests, causes to the unsent ones.

        The reasons of each outcome but `ok` sum to its count.

        Args:
            is_open: whether the requests have due times.
            has_statuses: whether they have statuses; iterations of user code have none.

        Raises:
            ConservationError: they do not.
        """
        answered = count_answered(self.outcomes) if has_statuses else 0
        if (statuses := sum(self.statuses.values())) != answered:
            raise ConservationError(f"{answered} must have a status, but {statuses} have one")
        if sum(self.not_sent) != self.outcomes[NOT_SENT]:
            raise ConservationError(
                f"{self.outcomes[NOT_SENT]} were not sent, but the causes sum to {sum(self.not_sent)}"
            )
        fault = find_time_fault(self.times, self.outcomes, is_open=is_open)
        if fault := fault or find_sum_fault(self.reasons.values(), self.outcomes):
            raise ConservationError(fault)


NO_REQUESTS = Account()
"""The account of no requests, to read only."""


def sum_accounts(accounts: Iterable[Account]) -> Account:
    """The sum of several accounts, to read only: the sum of one is that account itself."""
    each = list(accounts)
    if len(each) == 1:
        return each[0]
    total = Account(
        outcomes=sum_counts(account.outcomes for account in each),
        not_sent=[sum(column) for column in zip(build_no_causes(), *(a.not_sent for a in each), strict=True)],
        bytes_received=sum(account.bytes_received for account in each),
    )
    for account in each:
        total.add_reasons(account.statuses, account.reasons.values())
    times = dict.fromkeys(time for account in each for time in account.times)
    total.times = {
        time: sum_histograms([account.times[time] for account in each if time in account.times])
        for time in times
    }
    return total
