"""Which failed requests of a run are listed or retried: by outcome, target and reason."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from oku_core.accounting.outcome import OTHER, Outcome, read_status
from oku_core.errors import UserError, format_value
from oku_core.results.run_api import FailedRange
from oku_core.spec.description import RequestLines
from oku_core.spec.request_template import list_target_names
from oku_core.spec.spec import Spec


class FailureFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects failed requests; without an outcome, a target or reasons, those with any.

    `reasons` may have several, each as `oku failures` shows it; `other` are reasons that are not kept.
    """

    outcome: Outcome | None = None
    target: str | None = None
    reasons: Sequence[str] = ()

    @property
    def selects_all(self) -> bool:
        """Whether no failed request is left out."""
        return self == FailureFilter()

    def check(self, spec: Spec, run: str) -> None:
        """Raise `UserError` if a run does not have the target."""
        if self.target is not None and self.target not in list_target_names(spec):
            names = ", ".join(filter(None, list_target_names(spec))) or "no target with a name"
            raise UserError(f"--target: {format_value(self.target)} is not in run {run}, which has {names}")

    def may_select(self, failed: FailedRange) -> bool:
        """Whether a range has the outcome and the target, with any reason."""
        return self.outcome in (None, failed.outcome) and self.target in (None, failed.target)

    def selects(self, failed: FailedRange) -> bool:
        """Whether these requests are selected."""
        return self.may_select(failed) and (not self.reasons or failed.reason in self.reasons)

    def lacks_reason(self, failed: FailedRange) -> bool:
        """Whether it is not known if these requests failed for one of the reasons."""
        is_unknown = failed.reason == OTHER and bool(self.reasons) and OTHER not in self.reasons
        return is_unknown and self.may_select(failed)


class FailureSplitter:
    """Splits ranges of failed requests by target: ranges that no worker had are of all targets."""

    def __init__(self, spec: Spec, requests: RequestLines) -> None:
        self._requests = requests
        self._has_targets = list_target_names(spec) != ("",)

    def split(self, failed: FailedRange) -> Iterable[FailedRange]:
        """The range as ranges of one target each."""
        return self._iter_targets(failed) if self._has_targets and not failed.target else (failed,)

    def _iter_targets(self, failed: FailedRange) -> Iterator[FailedRange]:
        start, target = failed.start, self._requests.find_target(failed.start)
        for index in range(failed.start + 1, failed.stop):
            following = self._requests.find_target(index)
            if following != target:
                yield msgspec.structs.replace(failed, start=start, stop=index, target=target)
                start, target = index, following
        yield msgspec.structs.replace(failed, start=start, target=target)


def build_failed_range(start: int, stop: int, outcome: Outcome, target: str, reason: str) -> FailedRange:
    """A range with the status of its responses, which is a part of the reason."""
    status = read_status(reason)
    return FailedRange(start=start, stop=stop, outcome=outcome, target=target, reason=reason, status=status)
