"""A worker pod that leaves in order."""

from pathlib import Path

from tests.kit.kubernetes.pod_run import start_pod_run
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed

_LEASE = 15_000
"""Requests: about four seconds."""


def test_a_pod_that_drains_sends_nothing_twice(release: Release, tmp_path: Path) -> None:
    """Answers are accounted for and the rest is handed back: the servers counted each request once."""
    flags = (
        "--requests", str(5 * _LEASE), "--workers", "2", "--servers", "1", "--delay", "10ms..50ms",
        "--range-size", str(_LEASE),
    )  # fmt: skip
    with start_pod_run(release, tmp_path, *flags) as run:
        run.wait_for_accounted(2 * _LEASE)  # each worker has just begun with its second lease
        worker = run.find_worker()
        release.delete_pod(worker)
        release.wait_for_pods("workers", 2)
        summary = run.wait_for_end(120)
    assert_completed(summary)
    assert summary["resent_at_most"] == 0
    assert summary["servers"] == {"served": 5 * _LEASE}
    [drained] = [each for each in summary["workers"] if each["name"] == worker]
    assert drained["requests"] % _LEASE, "it was not in the middle of a lease"
    assert not drained["lost"]
