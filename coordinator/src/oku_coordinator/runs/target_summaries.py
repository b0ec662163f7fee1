"""Makes the summaries of the targets of a run, of all of it or of one phase, from its accounts."""

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.runs.account_figures import build_figures, measure_sent_rps
from oku_core.results.summary import TargetSummary
from oku_core.spec.load import WARM_UP
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target


def build_targets(spec: Spec, accounts: RunAccount, measured_s: float) -> list[TargetSummary]:
    """The summaries of all targets, in the order of the spec; none if the spec names none.

    Args:
        spec: of the run.
        accounts: what its requests sum to.
        measured_s: for how many seconds the run has been active after its warm-up.
    """
    return [_build_target(target, accounts, measured_s) for target in spec.targets]


def build_targets_of_phase(
    spec: Spec, accounts: RunAccount, phase: str, seconds: float
) -> list[TargetSummary]:
    """The same of one phase, which has lasted this long; its warm-up is a phase as any other."""
    return [_build_target_of_phase(target, accounts, phase, seconds) for target in spec.targets]


def _build_target(target: Target, accounts: RunAccount, measured_s: float) -> TargetSummary:
    account = accounts.build_total(lambda name: name[1] == target.name)
    has_warm_up = (WARM_UP, target.name) in accounts.parts
    measured = (
        accounts.build_total(lambda name: name[1] == target.name and name[0] != WARM_UP)
        if has_warm_up
        else account
    )
    return TargetSummary(
        name=target.name,
        weight=target.weight,
        requests=account.accounted,
        rate_rps=measure_sent_rps(measured.outcomes, measured_s),
        **build_figures(account, measured),
    )


def _build_target_of_phase(target: Target, accounts: RunAccount, phase: str, seconds: float) -> TargetSummary:
    account = accounts.build_total(lambda name: name == (phase, target.name))
    return TargetSummary(
        name=target.name,
        weight=target.weight,
        requests=account.accounted,
        rate_rps=measure_sent_rps(account.outcomes, seconds),
        **build_figures(account),
    )
