"""What a run waits for while Kubernetes brings pods and takes others away."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kit.kubernetes.forward import ForwardedApi
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until

_PATIENCE_S = 150.0


def test_a_run_with_fewer_delay_servers_than_the_last_begins_without_those_that_go(release: Release) -> None:
    """No request meets a server that is ending, and the number of served requests is known."""
    with release.open_api() as api:
        finish(api, requests=2000, workers=1, servers=2)
        summary = finish(api, requests=20_000, workers=1, servers=1)
    assert_all_were_served(summary)


def test_a_run_after_a_delay_server_was_replaced_sends_nothing_to_the_one_that_has_gone(
    release: Release,
) -> None:
    """A DNS cache keeps the old address for a while, and what is sent there gets no answer."""
    with release.open_api() as api:
        finish(api, requests=2000, workers=1, servers=1)
        release.delete_pod(release.list_ready("servers")[0])
        summary = finish(api, requests=20_000, workers=1, servers=1)
    assert_all_were_served(summary)


def test_a_quota_that_refuses_workers_is_reported(release: Release) -> None:
    """There is no pod that could say what keeps it from running."""
    with release.open_api() as api, allow_no_more_pods(release):
        run = api.submit(requests=1_000_000, workers=6, servers=1, delay="1s")
        try:
            wait_until(
                lambda: any("exceeded quota" in notice for notice in api.summary(run)["notices"]),
                _PATIENCE_S, "the quota is named",
            )  # fmt: skip
        finally:
            api.call("POST", f"/api/runs/{run}/cancel")
            api.wait_for_state(run, "cancelled", _PATIENCE_S)


def finish(api: ForwardedApi, **spec: Any) -> dict[str, Any]:
    """Carry a run out; its summary."""
    summary = api.wait_for_state(api.submit(**spec), "completed", _PATIENCE_S)
    assert_completed(summary)
    return summary


def assert_all_were_served(summary: dict[str, Any]) -> None:
    """Each request got its answer from a server that is still there."""
    assert summary["outcomes"] == dict.fromkeys(summary["outcomes"], 0) | {"ok": summary["requests"]}
    assert summary["servers"] == {"served": summary["requests"]}


@contextmanager
def allow_no_more_pods(release: Release) -> Iterator[None]:
    """A quota of as many pods as there are."""
    cluster, namespace = release.cluster, release.namespace
    metadata = {"name": "no-more", "namespace": namespace}
    pods = len(cluster.fetch_all("pods", namespace))
    spec = {"hard": {"pods": str(pods)}}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec})
    try:
        wait_until(
            lambda: "hard" in cluster.fetch("resourcequota", "no-more", namespace).get("status", {}),
            _PATIENCE_S, "the quota holds",
        )  # fmt: skip
        yield
    finally:
        cluster.call("delete", "resourcequota", "no-more", "-n", namespace)
