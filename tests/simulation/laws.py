"""The laws, judged from outside: from the file of the ledger alone, and from what the target has seen.

Nothing of the coordinator's own code decides here whether it was right.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.simulation.outside.target import CONNECT_ERROR, Target

from oku_core.accounting.index_ranges import IndexRanges

_connect = sqlite3.connect


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
    """

    state: str
    reason: str
    outcomes: list[int]
    resent: int
    at_risk: int
    leases: int
    pending: int

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)


class Judge:
    """Judges one run.

    Args:
        run: its id.
        requests: how many it has.
        target: what it asks.
    """

    def __init__(self, run: str, requests: int, target: Target) -> None:
        self._run = run
        self._requests = requests
        self._target = target
        self._path: Path | None = None
        self._database: sqlite3.Connection | None = None
        self._limits: dict[str, int] = {}

    def open(self, path: Path) -> None:
        """From now on the ledger is here."""
        self.close()
        self._path = path

    def close(self) -> None:
        """Let go of the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def check_taken(self, lease: str, position: int) -> None:
        """A worker takes a position of a lease: it must lie below the committed limit."""
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

    def fetch_standing(self) -> Standing:
        """The run as the file has it."""
        [row] = self._select("SELECT * FROM runs WHERE run = ?", self._run)
        leases = self._fetch_open()
        [pending] = self._select(
            "SELECT coalesce(sum(stop - start), 0) AS n FROM slices WHERE run = ? AND state = 'pending'",
            self._run,
        )
        return Standing(
            state=row["state"],
            reason=row["reason"],
            outcomes=json.loads(row["outcomes"]),
            resent=row["resent_at_most"],
            at_risk=sum(len(lease.in_flight) + min(lease.limit, lease.end) - lease.done for lease in leases),
            leases=len(leases),
            pending=pending["n"],
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
        self._check_sent(standing)
        return standing

    def check_at_rest(self) -> Standing:
        """Check what must hold of a run at rest, too: nothing is out, and its series sums to its account."""
        standing = self.check()
        if standing.leases:
            raise LawBrokenError(f"the run is {standing.state}, but {standing.leases} leases are open")
        series = [0] * len(standing.outcomes)
        for row in self._select("SELECT outcomes FROM series WHERE run = ?", self._run):
            series = [a + b for a, b in zip(series, json.loads(row["outcomes"]), strict=True)]
        if series != standing.outcomes:
            raise LawBrokenError(f"the series sums to {series}, but the account is {standing.outcomes}")
        [parts] = self._select("SELECT count(*) AS n FROM lease_parts WHERE run = ?", self._run)
        if parts["n"]:
            raise LawBrokenError(f"{parts['n']} parts are kept although no lease is open")
        return standing

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

    def _check_disjoint(self, accounted: list[tuple[int, int]]) -> None:
        accounted.sort()
        for (_, stop), (start, _) in pairwise(accounted):
            if start < stop:
                raise LawBrokenError(f"index {start} is accounted twice")

    def _check_outcomes(self, accounted: list[tuple[int, int]], standing: Standing) -> None:
        expected = [0] * len(standing.outcomes)
        for start, stop in accounted:
            expected = [a + b for a, b in zip(expected, self._target.sum_outcomes(start, stop), strict=True)]
        if expected != standing.outcomes:
            raise LawBrokenError(
                f"the account is {standing.outcomes}, but the answers to what it covers are {expected}"
            )
        for start, stop in accounted:
            for index in range(start, stop):
                if not self._target.seen[index] and self._target.answers[index].outcome != CONNECT_ERROR:
                    raise LawBrokenError(f"index {index} is accounted, but the target has never seen it")

    def _check_sent(self, standing: Standing) -> None:
        answered = standing.accounted - standing.outcomes[CONNECT_ERROR]
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


class _OpenLease:
    """An open lease as the file has it."""

    def __init__(self, row: sqlite3.Row) -> None:
        self.ranges = IndexRanges(
            json.loads(row["ranges"]) if row["ranges"] else [(row["start"], row["stop"])]
        )
        self.limit, self.end, self.done = row["limit"], row["end"], row["done"]
        self.in_flight: list[int] = json.loads(row["in_flight"])

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
