"""Which thresholds a spec cannot have: those on a target, a phase or a time that its run does not have."""

from collections.abc import Collection, Iterator

from oku_core.accounting.measured_time import Time
from oku_core.errors import format_value
from oku_core.spec.load import list_phase_times
from oku_core.spec.spec import Spec
from oku_core.spec.values.threshold import Threshold, Unit


def find_threshold_fault(spec: Spec, targets: Collection[str]) -> str | None:
    """Say what is wrong with a threshold of a spec; None if nothing is.

    Args:
        spec: the spec.
        targets: the names of its targets; empty if it has one without a name.
    """
    for threshold in spec.thresholds:
        for fault in _iter_faults(threshold, spec, targets):
            return f"{format_value(str(threshold))}: {fault}"
    return None


def _iter_faults(threshold: Threshold, spec: Spec, targets: Collection[str]) -> Iterator[str]:
    if threshold.target is not None and threshold.target not in targets and not spec.runs_user_code:
        known = f"it has {', '.join(targets)}" if targets else "it has one, without a name"
        yield f"the run has no target {format_value(threshold.target)}; {known}"
    phases = [phase.name for phase in list_phase_times(spec)]
    if threshold.phase is not None and (not threshold.phase or threshold.phase not in phases):
        known = f"it has {', '.join(phases)}" if phases != [""] else "it has only one, without a name"
        yield f"the run has no phase {format_value(threshold.phase)}; {known}"
    if spec.runs_user_code and threshold.target is not None and threshold.time is not Time.LATENCY:
        yield f"the requests that user code makes have no {threshold.time.label}"
    if spec.is_open:
        return
    if threshold.time is not Time.LATENCY:
        yield f"only the requests of a run with a rate have a {threshold.time.label}"
    if threshold.unit is Unit.OF_PLAN:
        yield "only a run with a rate has a plan"
