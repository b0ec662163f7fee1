"""The account of a run: what its checkpoints sum to, kept apart by phase and by name of requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oku_core.accounting.account import Account, sum_accounts, sum_counts
from oku_core.accounting.failure_reason import ReasonCount
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.outcome import LOST, NOT_DEALT
from oku_core.spec.spec import Spec

PartName = tuple[str, str]
"""The phase and the name of requests."""


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
        """The sum of all parts, or of some, to read only.

        Args:
            takes_in: says whether a part is among those to sum up.
        """
        return sum_accounts(account for name, account in self.parts.items() if takes_in(name))

    def copy(self) -> "RunAccount":
        """A copy that later checkpoints do not change."""
        parts, inner = (
            {name: account.copy() for name, account in accounts.items()}
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
