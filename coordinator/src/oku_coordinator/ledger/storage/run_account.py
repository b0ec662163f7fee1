"""The account of a run: what its checkpoints sum to, kept apart by phase and by name of requests."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from oku_core.accounting.failure_reason import MOST_KEPT_REASONS, OTHER, ReasonCount, find_sum_fault
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.outcome import (
    LOST,
    NOT_DEALT,
    NOT_SENT,
    build_no_causes,
    build_no_counts,
    count_answered,
    count_sent,
)
from oku_core.accounting.request_timing import TIMINGS, find_timing_fault
from oku_core.messaging.checkpoint import Part
from oku_core.spec.spec import Spec

PartName = tuple[str, str]
"""The phase and the name of requests."""
ReasonKey = tuple[int, str]
"""An outcome, as a place in `OUTCOMES`, and a reason for it."""
_HISTOGRAMS = ("latency", "response_time", "lateness", *TIMINGS)


@dataclass(kw_only=True)
class Account:
    """What the requests of one phase and name, or of several, sum to.

    Attributes:
        outcomes: the counts of outcomes in the order of `OUTCOMES`.
        not_sent: the counts of causes in the order of `NOT_SENT_CAUSES`.
        statuses: the number of responses by status code.
        bytes_received: the number of bytes in response bodies.
        latency: from sending to the last byte.
        response_time: from due to the last byte; empty in closed runs.
        lateness: from due to sending; empty in closed runs.
        connect: of new connections, how long TCP took.
        tls: of new connections, how long the TLS handshake took; empty without TLS.
        split_latency: the latencies of split answers, which arrived in several pieces.
        split_first_byte: of these, from sending to the first byte.
        transfer: of these, from the first to the last byte.
        reasons: why those failed that are not ok, with the first and last index of each.
    """

    outcomes: list[int] = field(default_factory=build_no_counts)
    not_sent: list[int] = field(default_factory=build_no_causes)
    statuses: dict[str, int] = field(default_factory=dict)
    bytes_received: int = 0
    latency: Histogram = field(default_factory=Histogram)
    response_time: Histogram = field(default_factory=Histogram)
    lateness: Histogram = field(default_factory=Histogram)
    connect: Histogram = field(default_factory=Histogram)
    tls: Histogram = field(default_factory=Histogram)
    split_latency: Histogram = field(default_factory=Histogram)
    split_first_byte: Histogram = field(default_factory=Histogram)
    transfer: Histogram = field(default_factory=Histogram)
    reasons: dict[ReasonKey, ReasonCount] = field(default_factory=dict)

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)

    @property
    def timings(self) -> dict[str, Histogram]:
        """How the time of the requests is split, by the names in `TIMINGS`."""
        return {name: getattr(self, name) for name in TIMINGS}

    def add(self, gained: Part) -> None:
        """Fold in what has been gained; its reasons have indices."""
        for index, count in enumerate(gained.outcomes):
            self.outcomes[index] += count
        for index, count in enumerate(gained.not_sent):
            self.not_sent[index] += count
        for status, count in gained.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.bytes_received += gained.bytes_received
        for name in _HISTOGRAMS:
            getattr(self, name).add(getattr(gained, name))
        for reason in gained.reasons:
            self._add_reason(reason)

    def _add_reason(self, count: ReasonCount) -> None:
        known = self.reasons.get(count.key)
        if known is None and len(self.reasons) >= MOST_KEPT_REASONS:
            known = self.reasons.get((count.outcome, OTHER), ReasonCount(count.outcome, OTHER, 0))
        grown = count if known is None else known.join(count)
        self.reasons[grown.key] = grown

    def build_part(self) -> Part:
        """The same as a part, without its seconds; later checkpoints do not change it."""
        return Part(
            outcomes=list(self.outcomes),
            not_sent=list(self.not_sent),
            statuses=dict(self.statuses),
            bytes_received=self.bytes_received,
            reasons=[self.reasons[key] for key in sorted(self.reasons)],
            failed={},  # they are kept apart
            **{name: getattr(self, name).build_latency() for name in _HISTOGRAMS},
        )

    def check(self, *, is_open: bool, has_statuses: bool = True) -> None:
        """Check the first law: latencies and statuses sum to what was answered, causes to what was not sent.

        The reasons of each outcome but `ok` sum to its count. Of split answers, latencies are first bytes and
        transfers together, and no more have agreed on TLS than have connected.

        Args:
            is_open: whether the requests have due times.
            has_statuses: whether they have statuses; iterations of user code have none.

        Raises:
            ConservationError: they do not.
        """
        answered = count_answered(self.outcomes)
        latencies, statuses = self.latency.total, sum(self.statuses.values())
        if latencies != answered or statuses != (answered if has_statuses else 0):
            raise ConservationError(
                f"{answered} were answered, but {latencies} latencies and {statuses} statuses are there"
            )
        if sum(self.not_sent) != self.outcomes[NOT_SENT]:
            raise ConservationError(
                f"{self.outcomes[NOT_SENT]} were not sent, but the causes sum to {sum(self.not_sent)}"
            )
        timed, late = self.response_time.total, self.lateness.total
        due = (answered, count_sent(self.outcomes)) if is_open else (0, 0)
        if (timed, late) != due:
            raise ConservationError(
                f"there are {timed} response times and {late} latenesses, but {due[0]} and {due[1]} are due"
            )
        fault = find_sum_fault(self.reasons.values(), self.outcomes)
        if fault := fault or find_timing_fault(self.timings, answered):
            raise ConservationError(fault)


@dataclass
class RunAccount:
    """What all requests of a run sum to, by phase and name.

    Attributes:
        parts: what is accounted.
        inner: beside it, the inner requests that user code has made within iterations.
    """

    parts: dict[PartName, Account] = field(default_factory=dict)
    inner: dict[PartName, Account] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[int]:
        """The counts of outcomes of all parts together."""
        return sum_counts(account.outcomes for account in self.parts.values())

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(account.accounted for account in self.parts.values())

    @property
    def seen(self) -> int:
        """How many requests workers have told of; the coordinator has accounted for the rest by itself."""
        return sum(
            account.accounted - account.outcomes[LOST] - account.not_sent[NOT_DEALT]
            for account in self.parts.values()
        )

    def list_reasons(self) -> list[tuple[str, ReasonCount]]:
        """Why requests failed, each with the name of its part, in the order of phases and names."""
        parts = sorted(self.parts)
        return [(part[1], count) for part in parts for count in self.parts[part].reasons.values()]

    def open(self, name: PartName) -> Account:
        """The account of a part, to fold into; a new one if nothing has come of it yet."""
        return self.parts.setdefault(name, Account())

    def build_total(self, takes_in: Callable[[PartName], bool] = lambda _: True) -> Account:
        """The sum of all parts, or of some; later checkpoints do not change it.

        Args:
            takes_in: says whether a part is among those to sum up.
        """
        return sum_accounts(account for name, account in self.parts.items() if takes_in(name))

    def copy(self) -> "RunAccount":
        """A copy that later checkpoints do not change."""
        parts, inner = (
            {name: _copy(account) for name, account in accounts.items()}
            for accounts in (self.parts, self.inner)
        )
        return RunAccount(parts, inner)

    def check(self, lengths: Lengths, series: Sequence[int], spec: Spec) -> None:
        """Check the first law over all parts: each one by itself, and that they sum to what is accounted.

        Args:
            lengths: how much of the run is in each state.
            series: the outcomes of all its seconds together, which are those of the run.
            spec: of the run.

        Raises:
            ConservationError: they do not.
        """
        outcomes = self.outcomes
        if sum(outcomes) != lengths.accounted:
            raise ConservationError(
                f"the outcomes sum to {sum(outcomes)}, but {lengths.accounted} are accounted"
            )
        if outcomes != list(series):
            raise ConservationError(f"the outcomes are {outcomes}, but the seconds sum to {list(series)}")
        for (phase, name), account in self.parts.items():
            try:
                account.check(is_open=spec.is_open, has_statuses=not spec.runs_user_code)
            except ConservationError as error:
                where = " ".join(filter(None, (phase and f"phase {phase}", name and f"name {name}")))
                raise ConservationError(f"{where}: {error}" if where else str(error)) from error


def sum_accounts(accounts: Iterable[Account]) -> Account:
    """The sum of several accounts; later checkpoints do not change it."""
    total: Account | None = None
    for account in accounts:
        if total is None:
            total = _copy(account)
        else:
            total.add(account.build_part())
    return total or Account()


def sum_counts(counts: Iterable[Sequence[int]]) -> list[int]:
    """The sum of several counts of outcomes."""
    return [sum(column) for column in zip(build_no_counts(), *counts, strict=True)]


def _copy(account: Account) -> Account:
    return Account(
        outcomes=list(account.outcomes),
        not_sent=list(account.not_sent),
        statuses=dict(account.statuses),
        bytes_received=account.bytes_received,
        reasons=dict(account.reasons),
        **{name: getattr(account, name).copy() for name in _HISTOGRAMS},
    )
