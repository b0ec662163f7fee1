"""The rows of the end screen on what failed, and on what a retry has completed."""

from collections.abc import Callable
from typing import Any

from rich.console import RenderableType
from tests.kit.runs.summaries import build_summary

from oku_cli.views.failures_view import MOST_SHOWN, build_completes, build_failures
from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import CompletesSummary, FailureSummary

Render = Callable[..., list[str]]


def build_failure(reason: str = "refused", **changes: object) -> FailureSummary:
    """A reason of some requests."""
    given: dict[str, Any] = {"requests": 1200, "first_index": 3, "last_index": 9000} | changes
    return FailureSummary(outcome=Outcome.CONNECT_ERROR, reason=reason, **given)


def show(failures: list[FailureSummary]) -> RenderableType:
    """What the end screen says of them."""
    return build_failures(build_summary(failures=failures))


def test_more_reasons_than_fit_are_counted(render: Render) -> None:
    """The summary as JSON has them all."""
    text = " ".join(render(show([build_failure(f"status {place}") for place in range(MOST_SHOWN + 2)])))
    assert f"status {MOST_SHOWN - 1}" in text
    assert f"status {MOST_SHOWN}" not in text
    assert "and 2 other reasons" in text


def test_a_certificate_that_is_not_trusted_comes_with_the_flags_for_it(render: Render) -> None:
    """A service on one's own machine often has a certificate that it signed itself."""
    advice = "--cacert trusts another issuer, --insecure any certificate"
    lines = render(show([build_failure("certificate not trusted: self-signed")]))
    assert lines[-1].strip() == advice
    assert not any(advice in line for line in render(show([build_failure("refused")])))


def test_a_retry_says_how_many_of_the_first_run_are_ok(render: Render) -> None:
    """What is left out is said, too."""
    completes = CompletesSummary(
        run="r1", retried="r2", requests=1000, ok=880, ok_with_retries=999, unlisted=7
    )
    text = " ".join(" ".join(render(build_completes(completes))).split())
    assert "run r1: 999 of 1,000 ok (99.90 %), 880 of them before" in text
    assert "7 that failed are left out" in text
