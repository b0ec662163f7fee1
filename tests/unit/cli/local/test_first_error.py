from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from oku_cli.local.first_error import find_first_error
from oku_core.results.summary import OutcomeCounts, Summary

MakeSummary = Callable[..., Summary]
FAILED = OutcomeCounts(
    ok=1, unexpected_status=9, timeout=2, connect_error=3, disconnected=0, protocol_error=0
)


def build_line(time: str, outcome: str, reason: str) -> str:
    """A line as a worker logs it."""
    return (
        f"2026-11-22T20:41:{time}Z warning  first {outcome}: {reason} worker=worker-1 outcome={outcome}"
        " logger=oku_workers.engines.first_errors\n"
    )


@pytest.fixture
def summary(make_summary: MakeSummary) -> Summary:
    """Of a run whose requests mostly found no connection."""
    return make_summary(started_at="2026-11-22T20:41:30.000Z", outcomes=FAILED)


def test_the_reason_of_most_failures_is_found(tmp_path: Path, summary: Summary) -> None:
    """Of this run, not of an earlier one, and whichever worker had it."""
    (tmp_path / "worker-1.log").write_text(
        "2026-11-22T20:41:30.100Z info     begins worker=worker-1\n"
        + build_line("29.999", "connect_error", "of an earlier run")
        + build_line("31.000", "timeout", "late")
    )
    (tmp_path / "worker-2.log").write_text(
        "x" * 1_000_000 + "\n" + build_line("31.000", "connect_error", "Connection refused: h:9")
    )
    (tmp_path / "coordinator.log").write_text(build_line("31.000", "connect_error", "not a worker's"))
    assert find_first_error(tmp_path, summary) == "Connection refused: h:9"


def test_without_failures_or_logs_nothing_is_found(tmp_path: Path, summary: Summary) -> None:
    """Statuses need no explanation, and a worker that logs only errors gives none."""
    assert find_first_error(tmp_path, summary) is None
    (tmp_path / "worker-1.log").write_text(build_line("31.000", "connect_error", "refused"))
    assert find_first_error(tmp_path, summary) == "refused"
    answered = msgspec.structs.replace(FAILED, timeout=0, connect_error=0)
    assert find_first_error(tmp_path, msgspec.structs.replace(summary, outcomes=answered)) is None
    assert find_first_error(tmp_path, msgspec.structs.replace(summary, started_at=None)) is None


def test_a_certificate_that_is_not_trusted_comes_with_the_flags_for_it(
    tmp_path: Path, summary: Summary
) -> None:
    """A service on one's own machine often has a certificate that it signed itself."""
    reason = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate"
    (tmp_path / "worker-1.log").write_text(build_line("31.000", "connect_error", reason))
    assert find_first_error(tmp_path, summary) == (
        f"{reason}; --cacert trusts another issuer, --insecure any certificate"
    )
