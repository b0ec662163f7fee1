"""The laws, judged from outside: from the file of the ledger alone, and from what the target has seen.

Nothing of the coordinator's own code decides here whether it was right.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.simulation.outside.target import (
    DISCONNECTED,
    LOST,
    NOT_SENT,
    UNEXPECTED_STATUS,
    Target,
    count_seen,
)

from oku_coordinator.ledger.tables.accounts.account_table import decode_times
from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.outcome import CAUSE_REASONS, OUTCOMES, WORKER_LOST
from oku_core.schedule.wave import Wave
from oku_core.spec.spec import Hook

_connect = sqlite3.connect
_REASONS = {NOT_SENT: CAUSE_REASONS, LOST: (WORKER_LOST,)}
"""Why requests fail with an outcome, whatever the target answers."""


class LawBrokenError(Exception):
    """A law does not hold; the text says which, and by how much."""


@dataclass(frozen=True)
class Standing:
    """A run as the file has it.

    Attributes:
        state: of the run.
        reason: for it.
        outcomes: what is accounted.
        resent: how many requests were sent again at most.
        at_risk: how many requests of open leases may have been sent without being accounted.
        leases: how many leases are open.
        pending: how many requests are in no lease and have no outcome.
        unused: how many requests were left over when the time of the run ended.
        requests: how many the run has.
        not_sent: how many were not sent for each cause.
        phases: how many requests of each phase are accounted.
        targets: how many requests to each target are accounted.
    """

    state: str
    reason: str
    outcomes: list[int]
    resent: int
    at_risk: int
    leases: int
    pending: int
    unused: int
    requests: int
    not_sent: list[int]
    phases: dict[str, int]
    targets: dict[str, int]

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)


class DeadLease(NamedTuple):
    """A lease that was taken back.

    Attributes:
        id: the lease.
        closed_at: when, in Unix time.
        at_risk: what of it may have been sent without being accounted, as places in the ledger.
        allowed: the same by its limit alone, whatever became known of it since.
    """

    id: str
    closed_at: float
    at_risk: Sequence[int]
    allowed: Sequence[int]


class HookRow(NamedTuple):
    """A hook as the file has it.

    Attributes:
        state: what became of it.
        attempt: the number of its newest call.
        value: what it returned.
    """

    state: str
    attempt: int
    value: str


class Judge:
    """Judges one run.

    Args:
        run: its id.
        requests: how many there are to take from.
        target: what it asks.
        is_open: whether its requests have due times, so that some may not be sent.

    Attributes:
        accounted: the ranges that were accounted at the last check.
    """

    def __init__(self, run: str, requests: int, target: Target, *, is_open: bool = False) -> None:
        self._run = run
        self._requests = requests
        self._target = target
        self._is_open = is_open
        self.accounted: list[tuple[int, int]] = []
        self._path: Path | None = None
        self._database: sqlite3.Connection | None = None
        self._limits: dict[str, int] = {}
        self._dealt_at: dict[str, float] = {}
        self._taken: dict[str, int] = {}
        """The first position of each lease that its worker has not taken."""

    def open(self, path: Path) -> None:
        """From now on the ledger is here."""
        self.close()
        self._path = path

    def close(self) -> None:
        """Let go of the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def list_holders(self) -> set[str]:
        """The processes that hold open leases."""
        rows = self._select("SELECT incarnation FROM leases WHERE run = ? AND state = 'active'", self._run)
        return {row["incarnation"] for row in rows} if self._path else set()

    def list_open_leases(self) -> set[str]:
        """The ids of the open leases."""
        rows = self._select("SELECT id FROM leases WHERE run = ? AND state = 'active'", self._run)
        return {row["id"] for row in rows}

    def check_taken(self, lease: str, position: int) -> None:
        """A worker takes a position of a lease: it must lie below the committed limit."""
        self._taken[lease] = max(self._taken.get(lease, 0), position + 1)
        if position < self._limits.get(lease, 0):
            return
        for row in self._select('SELECT id, "limit" AS bound FROM leases WHERE run = ?', self._run):
            self._limits[row["id"]] = max(self._limits.get(row["id"], 0), row["bound"])
        if position >= self._limits.get(lease, 0):
            raise LawBrokenError(
                f"position {position} of lease {lease} is taken, but its committed limit is"
                f" {self._limits.get(lease, 0)}"
            )

    def find_done(self, lease: str) -> int:
        """How far a lease is, as committed."""
        rows = self._select("SELECT done FROM leases WHERE id = ?", lease) if self._path else []
        return int(rows[0]["done"]) if rows else 0

    def fetch_periods(self) -> list[tuple[float, float, float | None]]:
        """Each start of the run's clock, in Unix time, what the clock said then, and what at its stop."""
        rows = self._select(
            "SELECT starts_at, offset_s, stop_s FROM active_periods WHERE run = ? ORDER BY ordinal", self._run
        )
        return [(row["starts_at"], row["offset_s"], row["stop_s"]) for row in rows]

    def fetch_hooks(self) -> dict[Hook, HookRow]:
        """What became of the hooks of the run."""
        rows = self._select("SELECT hook, state, attempt, value FROM hooks WHERE run = ?", self._run)
        return {Hook(row["hook"]): HookRow(row["state"], row["attempt"], row["value"]) for row in rows}

    def fetch_waves(self) -> list[Wave]:
        """How the part of the schedule that is not accounted is cut."""
        rows = self._select("SELECT body FROM waves WHERE run = ?", self._run)
        return [msgspec.msgpack.decode(row["body"], type=Wave) for row in rows]

    def find_dealt_at(self, lease: str) -> float | None:
        """When a lease was dealt, in Unix time; None if it is not known."""
        if lease not in self._dealt_at:
            for row in self._select("SELECT cut_at FROM leases WHERE id = ?", lease):
                self._dealt_at[lease] = row["cut_at"]
        return self._dealt_at.get(lease)

    def fetch_dead(self) -> list[DeadLease]:
        """The leases that were taken back from workers that may have sent what they had."""
        rows = self._select(
            "SELECT leases.*, ranges FROM leases LEFT JOIN lease_ranges ON lease = id"
            " WHERE leases.run = ? AND state = 'expired' AND reason IN ('worker_lost', 'dropped')",
            self._run,
        )
        leases = [(row, _OpenLease(row)) for row in rows]
        return [
            DeadLease(row["id"], row["closed_at"], lease.list_at_risk(), lease.list_allowed())
            for row, lease in leases
        ]

    def list_unsent(self) -> list[int]:
        """What is accounted although the target has never seen it, as places in the ledger."""
        return [
            place
            for start, stop in self.accounted
            for place in range(start, stop)
            if not self._target.has_seen(place)
        ]

    def fetch_standing(self) -> Standing:
        """The run as the file has it."""
        [row] = self._select("SELECT * FROM runs WHERE run = ?", self._run)
        leases = self._fetch_open()
        sums = self._select(
            "SELECT state, sum(stop - start) AS n FROM slices WHERE run = ? GROUP BY state", self._run
        )
        lengths = {each["state"]: each["n"] for each in sums}
        accounts = self._select(
            "SELECT phase, name, outcomes, not_sent FROM accounts WHERE run = ?", self._run
        )
        return Standing(
            state=row["state"],
            reason=row["reason"],
            outcomes=json.loads(row["outcomes"]),
            resent=row["resent_at_most"],
            at_risk=sum(lease.count_at_risk() for lease in leases),
            leases=len(leases),
            pending=lengths.get("pending", 0),
            unused=lengths.get("unused", 0),
            requests=row["requests"],
            not_sent=[
                sum(causes)
                for causes in zip(*(json.loads(each["not_sent"]) for each in accounts), strict=True)
            ],
            phases=_sum_by("phase", accounts),
            targets=_sum_by("name", accounts),
        )

    def check(self) -> Standing:
        """Check all that must hold at any moment.

        Raises:
            LawBrokenError: a law does not hold.
        """
        standing = self.fetch_standing()
        if "balance" in standing.reason:
            raise LawBrokenError(f"the run does not balance: {standing.reason}")
        leases = self._fetch_open()
        accounted = self._check_slices(leases)
        for lease in leases:
            accounted += lease.cover()
        self._check_disjoint(accounted)
        self._check_outcomes(accounted, standing)
        self._check_parts(standing)
        self._check_reasons(standing)
        self._check_times(standing)
        self._check_inner(accounted, standing)
        self.accounted = accounted
        self._check_sent(standing)
        return standing

    def check_at_rest(self) -> Standing:
        """Check what must hold of a run at rest, too: nothing is out, and its series sums to its account."""
        standing = self.check()
        if standing.leases:
            raise LawBrokenError(f"the run is {standing.state}, but {standing.leases} leases are open")
        if standing.state == "completed" and standing.accounted != self._requests - standing.unused:
            raise LawBrokenError(f"of {self._requests} requests only {standing.accounted} are accounted")
        series = [0] * len(standing.outcomes)
        for row in self._select("SELECT outcomes FROM series WHERE run = ?", self._run):
            series = [a + b for a, b in zip(series, json.loads(row["outcomes"]), strict=True)]
        if series != standing.outcomes:
            raise LawBrokenError(f"the series sums to {series}, but the account is {standing.outcomes}")
        for table in ("lease_parts", "inner_parts"):
            [parts] = self._select(f"SELECT count(*) AS n FROM {table} WHERE run = ?", self._run)
            if parts["n"]:
                raise LawBrokenError(f"{parts['n']} rows of {table} are kept although no lease is open")
        self._check_failed(standing)
        self._check_given_back()
        self._check_taken_back()
        return standing

    def _check_reasons(self, standing: Standing) -> None:
        """The reasons of each outcome but the first sum to its count."""
        sums = [standing.outcomes[0]] + [0] * (len(standing.outcomes) - 1)
        for row in self._select("SELECT reasons FROM accounts WHERE run = ?", self._run):
            for outcome, _, requests, *_ends in json.loads(row["reasons"]):
                sums[outcome] += requests
        if sums != standing.outcomes:
            raise LawBrokenError(f"the reasons sum to {sums}, but the account is {standing.outcomes}")

    def _check_times(self, standing: Standing) -> None:
        """The connections and the split answers are those that the simulated engine tells of, each once."""
        counts: Counter[str] = Counter()
        steps = ("connect", "tls", "transfer")
        for row in self._select("SELECT times FROM accounts WHERE run = ?", self._run):
            for time, histogram in decode_times(row["times"]).items():
                if time in steps:
                    counts[time] += histogram.total
        cut_off, split = standing.outcomes[DISCONNECTED], standing.outcomes[UNEXPECTED_STATUS]
        if counts != Counter(connect=cut_off, tls=cut_off, transfer=split):
            raise LawBrokenError(f"the times are of {dict(counts)}, but the account is {standing.outcomes}")

    def _check_inner(self, accounted: list[tuple[int, int]], standing: Standing) -> None:
        """Inner requests are at least those of what is accounted, and at most those that were made."""
        counted: Counter[str] = Counter()
        for row in self._select("SELECT name, body FROM inner_accounts WHERE run = ?", self._run):
            counted[row["name"]] += sum(msgspec.msgpack.decode(row["body"])["outcomes"])
        made = self._target.inner
        if not counted <= made:
            raise LawBrokenError(f"{dict(counted)} inner requests are counted, but {dict(made)} were made")
        if not made or standing.outcomes[NOT_SENT] + standing.outcomes[LOST]:
            return  # nobody knows from outside which of the indices made none
        least = Counter(
            name for piece in accounted for place in range(*piece) for name in self._target.list_inner(place)
        )
        if not least <= counted:
            raise LawBrokenError(f"{dict(counted)} inner requests are counted, but {dict(least)} have ended")

    def _check_taken_back(self) -> None:
        """Of a lease that was taken back, all that its worker took may have been sent, or is covered."""
        rows = self._select(
            "SELECT leases.*, ranges FROM leases LEFT JOIN lease_ranges ON lease = id"
            " WHERE leases.run = ? AND state = 'expired'",
            self._run,
        )
        for row in rows:
            lease, taken = _OpenLease(row), self._taken.get(row["id"], 0)
            if taken > min(lease.limit, lease.end):
                raise LawBrokenError(
                    f"lease {row['id']} was taken to {taken}, but it is counted to {lease.end} of"
                    f" {lease.limit} that were allowed"
                )

    def _check_given_back(self) -> None:
        """A lease that its worker has ended counts as sent again what was begun of it and given back."""
        closed = "SELECT id, resent FROM leases WHERE run = ? AND state = 'closed'"
        for row in self._select(closed, self._run):
            given_back = self._target.given_back[row["id"]]
            if row["resent"] != given_back:
                raise LawBrokenError(
                    f"lease {row['id']} has {row['resent']} that may be sent again, but {given_back} of those"
                    " that had begun were given back"
                )

    def _check_failed(self, standing: Standing) -> None:
        """What is listed as failed of a run at rest is exactly what the target has not answered well."""
        listed: dict[int, tuple[int, str]] = {}
        for place, outcome, reason in self._iter_failed():
            if place in listed:
                raise LawBrokenError(f"index {place} is listed as failed twice")
            listed[place] = outcome, reason
        counts = [standing.outcomes[0], *([0] * (len(OUTCOMES) - 1))]
        for outcome, _ in listed.values():
            counts[outcome] += 1
        if counts != standing.outcomes:
            raise LawBrokenError(f"{counts} are listed as failed, but the account is {standing.outcomes}")
        for place in (place for start, stop in self.accounted for place in range(start, stop)):
            outcome, reason = listed.get(place, (0, ""))
            answer = self._target.find_answer(place)
            if outcome not in (NOT_SENT, LOST, answer.outcome):
                raise LawBrokenError(f"index {place} is listed as {outcome}, its answer is {answer.outcome}")
            usual = (OUTCOMES[outcome], "no end", "step 0: check", f"status {answer.status}")
            if outcome and reason not in _REASONS.get(outcome, usual):
                raise LawBrokenError(f"index {place} is listed as {outcome} for {reason!r}, not for {usual}")

    def _iter_failed(self) -> Iterator[tuple[int, int, str]]:
        """Each index that is listed as failed, with its outcome and its reason."""
        for row in self._select("SELECT outcome, body, reasons FROM failed WHERE run = ?", self._run):
            packed, at = msgspec.msgpack.decode(row["body"]), 0
            texts, runs = msgspec.msgpack.decode(row["reasons"])
            numbers: list[int] = []
            for number in runs:
                numbers += [number] if number >= 0 else [numbers[-1]] * -number
            reasons = (("other", *texts)[number] for number in numbers)
            for gap, length in zip(packed[0::2], packed[1::2], strict=True):
                start, at = at + gap, at + gap + length
                yield from (
                    (place, OUTCOMES.index(row["outcome"]), next(reasons)) for place in range(start, at)
                )

    def _check_slices(self, leases: "list[_OpenLease]") -> list[tuple[int, int]]:
        """The slices are the request space, and the leased ones the open leases; gives the accounted ones."""
        at = 0
        leased: list[tuple[int, int]] = []
        accounted: list[tuple[int, int]] = []
        for row in self._select(
            "SELECT start, stop, state FROM slices WHERE run = ? ORDER BY start", self._run
        ):
            if row["start"] != at:
                raise LawBrokenError(f"the slices have a gap or an overlap at {at}")
            at = row["stop"]
            if row["state"] == "leased":
                leased.append((row["start"], row["stop"]))
            elif row["state"] == "accounted":
                accounted.append((row["start"], row["stop"]))
        if at != self._requests:
            raise LawBrokenError(f"the slices end at {at}, not at {self._requests}")
        held = sorted(piece for lease in leases for piece in lease.ranges.cut(0, lease.end))
        if _join(held) != _join(leased):
            raise LawBrokenError(f"the leased slices are {leased}, but the leases hold {held}")
        return accounted

    def _check_parts(self, standing: Standing) -> None:
        """Phases and causes sum to the account; what is unused is no part of the run."""
        if sum(standing.phases.values()) != standing.accounted:
            raise LawBrokenError(f"{standing.accounted} are accounted, but of phases {standing.phases}")
        if sum(standing.not_sent) != standing.outcomes[NOT_SENT]:
            raise LawBrokenError(
                f"{standing.outcomes[NOT_SENT]} are not sent, but by cause {standing.not_sent}"
            )
        if standing.unused and standing.state not in ("tearing_down", "completed", "cancelled"):
            raise LawBrokenError(f"{standing.unused} are unused, but the run is {standing.state}")
        if standing.requests != self._requests - standing.unused:
            raise LawBrokenError(
                f"the run has {standing.requests} of {self._requests} requests, {standing.unused} are unused"
            )

    def _check_disjoint(self, accounted: list[tuple[int, int]]) -> None:
        accounted.sort()
        for (_, stop), (start, _) in pairwise(accounted):
            if start < stop:
                raise LawBrokenError(f"index {start} is accounted twice")

    def _check_outcomes(self, accounted: list[tuple[int, int]], standing: Standing) -> None:
        expected = [0] * len(standing.outcomes)
        for start, stop in accounted:
            expected = [a + b for a, b in zip(expected, self._target.sum_outcomes(start, stop), strict=True)]
        if self._is_open:
            self._check_unsent(expected, standing)
            return
        if expected != standing.outcomes:
            raise LawBrokenError(
                f"the account is {standing.outcomes}, but the answers to what it covers are {expected}"
            )
        for start, stop in accounted:
            for index in range(start, stop):
                if not self._target.has_seen(index):
                    raise LawBrokenError(f"index {index} is accounted, but the target has never seen it")

    def _check_unsent(self, expected: list[int], standing: Standing) -> None:
        """Of the answers to what an open run covers, those are missing that were not sent, or were lost."""
        missing = [
            most - count
            for place, (most, count) in enumerate(zip(expected, standing.outcomes, strict=True))
            if place not in (NOT_SENT, LOST)
        ]
        unsent = standing.outcomes[NOT_SENT] + standing.outcomes[LOST]
        if min(missing) < 0 or sum(missing) != unsent:
            raise LawBrokenError(
                f"the account is {standing.outcomes}, but the answers to what it covers are {expected}"
            )

    def _check_sent(self, standing: Standing) -> None:
        answered = count_seen(standing.outcomes)
        most = answered + standing.resent + standing.at_risk
        if not answered <= self._target.sent <= most:
            raise LawBrokenError(
                f"the target has seen {self._target.sent} requests, but {answered} are accounted as sent,"
                f" {standing.resent} resent at most, and {standing.at_risk} at risk"
            )

    def _fetch_open(self) -> "list[_OpenLease]":
        rows = self._select(
            "SELECT leases.*, ranges FROM leases LEFT JOIN lease_ranges ON lease = id"
            " WHERE leases.run = ? AND state = 'active'",
            self._run,
        )
        return [_OpenLease(row) for row in rows]

    def _select(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        if self._database is None:
            self._database = _connect(f"file:{self._path}?mode=ro", uri=True, isolation_level=None)
            self._database.row_factory = sqlite3.Row
        return self._database.execute(sql, values).fetchall()


def _sum_by(column: str, accounts: Iterable[sqlite3.Row]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for account in accounts:
        sums[account[column]] += sum(json.loads(account["outcomes"]))
    return dict(sums)


class _OpenLease:
    """An open lease as the file has it."""

    def __init__(self, row: sqlite3.Row) -> None:
        self.ranges = IndexRanges(
            json.loads(row["ranges"]) if row["ranges"] else [(row["start"], row["stop"])]
        )
        self.limit, self.end, self.done = int(row["limit"]), int(row["end"]), int(row["done"])
        self.in_flight: list[int] = json.loads(row["in_flight"])
        untouched: list[int] = json.loads(row["untouched"])
        self.sent_in_flight = [position for position in self.in_flight if position not in untouched]

    def count_at_risk(self) -> int:
        """How many requests may have been sent without being accounted."""
        return len(self.sent_in_flight) + min(self.limit, self.end) - self.done

    def list_at_risk(self) -> list[int]:
        """The indices that may have been sent without being accounted."""
        beyond = self.ranges.cut(self.done, min(self.limit, self.end))
        return [
            *self.ranges.list_indices(self.sent_in_flight),
            *(index for start, stop in beyond for index in range(start, stop)),
        ]

    def list_allowed(self) -> list[int]:
        """The indices that may have been sent as far as the limit says."""
        beyond = self.ranges.cut(self.done, self.limit)
        return [
            *self.ranges.list_indices(self.in_flight),
            *(index for start, stop in beyond for index in range(start, stop)),
        ]

    def cover(self) -> Iterator[tuple[int, int]]:
        """The ranges of indices that it accounts for."""
        first = 0
        for hole in (*self.in_flight, self.done):
            yield from self.ranges.cut(first, hole)
            first = hole + 1


def _join(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in pieces:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined
