"""The account of a run: the sums of its checkpoints, by phase and by name of requests.

It also has totals by phase, by name, and over all that is measured. These are built on the first access, and
grow with the parts from then on: nothing is summed again each second.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from oku_core.accounting.account import NO_REQUESTS, Account, sum_accounts
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.outcome import LOST, NOT_DEALT, ReasonCount, build_no_causes, sum_counts
from oku_core.spec.load import WARM_UP
from oku_core.spec.spec import Spec

PartName = tuple[str, str]
"""The phase and the name of requests."""
_Key = TypeVar("_Key")


class _Totals(Generic[_Key]):
    """The totals of accounts by a key; the total of a single account is that account itself.

    Args:
        members: the accounts by their keys.
        sums: fewer accounts with the same sum, if there are any.
    """

    def __init__(
        self, members: Mapping[_Key, Sequence[Account]], sums: Mapping[_Key, Sequence[Account]] | None = None
    ) -> None:
        self._totals = {key: sum_accounts(accounts) for key, accounts in (sums or members).items()}
        self._alone = {key for key, accounts in members.items() if len(accounts) == 1}
        """The keys with a single account."""
        for key, accounts in members.items():
            if key not in self._alone:
                for account in accounts:
                    account.totals += (self._totals[key],)

    def include(self, key: _Key, account: Account) -> None:
        """Add a new, empty account to the total of a key."""
        if key not in self._totals:
            self._totals[key] = account
            self._alone.add(key)
            return
        if key in self._alone:
            self._alone.discard(key)
            first = self._totals[key]
            self._totals[key] = first.copy()
            first.totals += (self._totals[key],)
        account.totals += (self._totals[key],)

    def get(self, key: _Key) -> Account:
        """The total of a key, read-only."""
        return self._totals.get(key, NO_REQUESTS)

    def freeze(self) -> "_Totals[_Key]":
        """A copy with accounts that do not grow."""
        return _Totals({key: [total.freeze()] for key, total in self._totals.items()})


class _Sums(NamedTuple):
    """All totals of parts; the warm-up is not measured."""

    phases: _Totals[str]
    names: _Totals[str]
    measured: _Totals[None]

    def include(self, part: PartName, account: Account) -> None:
        phase, name = part
        self.phases.include(phase, account)
        if phase != WARM_UP:
            self.names.include(name, account)
            self.measured.include(None, account)

    def freeze(self) -> "_Sums":
        return _Sums(self.phases.freeze(), self.names.freeze(), self.measured.freeze())


class PartAccounts(dict[PartName, Account]):
    """Accounts by phase and name, with their totals.

    Args:
        parts: the existing parts.
        sums: their totals, if known.
    """

    def __init__(self, parts: Mapping[PartName, Account] | None = None, sums: _Sums | None = None) -> None:
        super().__init__(parts or {})
        self.names = {name for _, name in self}
        """The names of all parts."""
        self._sums = sums

    def open(self, name: PartName) -> Account:
        """The account of a part, to fold into; created if the part is new."""
        account = self.get(name)
        if account is None:
            account = self[name] = Account()
            self.names.add(name[1])
            if self._sums is not None:
                self._sums.include(name, account)
        return account

    def fetch_phase(self, phase: str) -> Account:
        """The total of a phase."""
        return self._sum_up().phases.get(phase)

    def fetch_measured(self, name: str | None = None) -> Account:
        """The total of a name, or of all, without the warm-up."""
        sums = self._sum_up()
        return sums.measured.get(None) if name is None else sums.names.get(name)

    def fetch_whole(self, name: str | None = None) -> Account:
        """The total of a name, or of all, with the warm-up."""
        both = self.list_all() if name is None else self.list_named(name)
        return sum_accounts(account for account in both if account is not NO_REQUESTS)

    def list_all(self) -> list[Account]:
        """Two accounts that sum to all: the warm-up and the measured rest."""
        return [self.fetch_phase(WARM_UP), self.fetch_measured()]

    def list_named(self, name: str) -> list[Account]:
        """Two accounts that sum to a name: its warm-up and the measured rest."""
        return [self.get((WARM_UP, name), NO_REQUESTS), self.fetch_measured(name)]

    def list_fewest(self) -> Collection[Account]:
        """Accounts that sum to all: two totals if they are known, else all parts."""
        return self.values() if self._sums is None else self.list_all()

    def freeze(self) -> "PartAccounts":
        """A read-only copy, unaffected by later growth."""
        return PartAccounts(
            {name: account.freeze() for name, account in self.items()}, self._sum_up().freeze()
        )

    def freeze_totals(self) -> "PartAccounts":
        """The same with totals only, and the parts of the warm-up: enough for the figures of names."""
        warm_up = {name: account.freeze() for name, account in self.items() if name[0] == WARM_UP}
        totals = PartAccounts(warm_up, self._sum_up().freeze())
        totals.names = set(self.names)
        return totals

    def _sum_up(self) -> _Sums:
        if self._sums is None:
            phases: dict[str, list[Account]] = {}
            names: dict[str, list[Account]] = {}
            for (phase, name), account in self.items():
                phases.setdefault(phase, []).append(account)
                if phase != WARM_UP:
                    names.setdefault(name, []).append(account)
            measured = {None: [account for accounts in names.values() for account in accounts]}
            by_name = _Totals(names)
            few = {None: [by_name.get(name) for name in names]} if len(names) > 1 else None
            self._sums = _Sums(_Totals(phases), by_name, _Totals(measured if names else {}, few))
        return self._sums


@dataclass
class RunAccount:
    """The account of all requests of a run, by phase and name.

    Attributes:
        parts: the accounted requests.
        inner: the inner requests of user code within iterations.
        is_checked: whether each part was checked since it was read.
    """

    parts: PartAccounts = field(default_factory=PartAccounts)
    inner: PartAccounts = field(default_factory=PartAccounts)
    is_checked: bool = False

    def freeze(self) -> "RunAccount":
        """A read-only copy, unaffected by later checkpoints."""
        return RunAccount(self.parts.freeze(), self.inner.freeze())

    def freeze_totals(self) -> "RunAccount":
        """A read-only copy of the totals."""
        return RunAccount(self.parts.freeze_totals(), self.inner.freeze_totals())

    @property
    def outcomes(self) -> list[int]:
        """The counts of outcomes of all parts together."""
        return sum_counts(account.outcomes for account in self.parts.list_fewest())

    @property
    def accounted(self) -> int:
        """The number of requests with an outcome."""
        return sum(self.outcomes)

    @property
    def not_sent(self) -> list[int]:
        """Why requests were not sent, as counts of causes."""
        counts = [account.not_sent for account in self.parts.list_fewest()]
        return [sum(column) for column in zip(build_no_causes(), *counts, strict=True)]

    @property
    def seen(self) -> int:
        """The number of requests reported by workers; the coordinator has accounted the rest by itself."""
        outcomes = self.outcomes
        return sum(outcomes) - outcomes[LOST] - self.not_sent[NOT_DEALT]

    def list_reasons(self) -> list[tuple[str, ReasonCount]]:
        """Why requests failed, each with the name of its part."""
        return [
            (name, count)
            for (_, name), account in self.parts.items()
            if account.reasons
            for count in account.reasons.values()
        ]

    def check(
        self,
        lengths: Lengths,
        series: Sequence[int],
        spec: Spec,
        changed: Collection[PartName] | None = None,
    ) -> None:
        """Check conservation: each part is consistent, and they sum to the accounted requests.

        Args:
            lengths: how much of the run is in each state.
            series: the outcomes of all its seconds together, which are those of the run.
            spec: the spec of the run.
            changed: the parts to check individually; all if None.

        Raises:
            ConservationError: a check has failed.
        """
        outcomes = self.outcomes
        if sum(outcomes) != lengths.accounted:
            raise ConservationError(
                f"the outcomes sum to {sum(outcomes)}, but {lengths.accounted} are accounted"
            )
        if outcomes != list(series):
            raise ConservationError(f"the outcomes are {outcomes}, but the seconds sum to {list(series)}")
        self.check_parts(spec, changed)

    def check_parts(self, spec: Spec, names: Collection[PartName] | None = None) -> None:
        """Check parts individually, all if no names are given; `ConservationError` if one is wrong."""
        for phase, name in self.parts if names is None else names:
            try:
                self.parts[phase, name].check(is_open=spec.is_open, has_statuses=not spec.runs_user_code)
            except ConservationError as error:
                where = " ".join(filter(None, (phase and f"phase {phase}", name and f"name {name}")))
                raise ConservationError(f"{where}: {error}" if where else str(error)) from error
        self.is_checked = self.is_checked or names is None
