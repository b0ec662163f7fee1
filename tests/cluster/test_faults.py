"""What happens to the pods of a run that goes on: one after the other to the same run, and its account."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.kit.kubernetes.pod_run import PodRun, start_pod_run
from tests.kit.kubernetes.release import Release, wait_until_published
from tests.kit.loki.dashboards import Grafana, list_queries
from tests.kit.loki.loki_account import assert_published
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until

_FLAGS = (
    "--requests", "650k", "--workers", "4", "--servers", "2",
    "--engine", "httptools", "--delay", "lognormal:10ms,2", "--timeout", "8s", "--concurrency", "120",
)  # fmt: skip
"""About 400 requests a second for each worker, which lasts minutes longer than all that happens.

Some of the requests in flight always have seconds to go: a worker that is killed cannot drain.
"""
_END_S = 500.0


@pytest.fixture(scope="module")
def run(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodRun]:
    """The run, over four workers against two delay servers. The release has its own values again after it."""
    with start_pod_run(release, tmp_path_factory.mktemp("faults"), *_FLAGS) as run:
        release.wait_for_pods("workers", 4)
        yield run
    release.upgrade()


def test_a_worker_pod_is_deleted(run: PodRun) -> None:
    """With a grace period the worker drains: nothing is sent twice."""
    with run.hurting():
        run.release.delete_pod(run.find_worker())
        run.release.wait_for_pods("workers", 4)


def test_a_worker_pod_is_killed(run: PodRun) -> None:
    """Without a grace period it cannot drain: its unfinished requests are sent again, and no others."""
    with run.hurting(may_resend=True):
        # The node kills after a second or two, a busy one so late that a worker may have drained by then.
        assert any(kill(run, run.find_worker()) for _ in range(3)), "no worker is lost"
        run.release.wait_for_pods("workers", 4)


def test_the_coordinator_pod_is_deleted(run: PodRun) -> None:
    """Its ledger is on a volume, and workers wait for it, ready as before: nothing is sent twice."""
    with run.hurting(), staying_ready(run.release, "workers"):
        run.release.replace_pod("coordinator")


def test_the_valkey_pod_is_deleted(run: PodRun) -> None:
    """Messages may be lost, and requests in progress may be sent again; workers are ready all the time."""
    with run.hurting(may_resend=True), staying_ready(run.release, "workers"):
        run.release.replace_pod("valkey")


def test_the_loki_pod_is_deleted(run: PodRun) -> None:
    """Lines wait in the ledger; the run does not."""
    with run.hurting():
        run.release.replace_pod("loki")


def test_a_delay_server_pod_is_deleted(run: PodRun) -> None:
    """Requests that it was serving fail and are accounted for; its counts go with it, which is reported."""
    with run.hurting():
        run.release.replace_pod("servers")
    assert run.summary["servers"] is None


def test_a_worker_pod_is_evicted(run: PodRun) -> None:
    """The disruption budget lets one worker go at a time, as when a node is drained, and it drains."""
    with run.hurting():
        run.release.evict_pod(run.find_worker())
        run.release.wait_for_pods("workers", 4)


def test_a_user_scales_the_workers(run: PodRun) -> None:
    """The Deployment is scaled to eight and to two: the coordinator accepts it, nothing is sent twice."""
    with run.hurting():
        for size in (8, 2, 4):
            run.release.scale("workers", size)
            run.release.wait_for_pods("workers", size)
            run.wait_for_progress()
            assert run.release.count_wanted("workers") == size


def test_the_release_is_upgraded(run: PodRun) -> None:
    """With other values for coordinator and workers, their pods are replaced and their number stays."""
    before = {pod for part in ("coordinator", "workers") for pod in run.release.list_ready(part)}
    with run.hurting():
        run.release.upgrade("--set=coordinator.logLevel=warning", "--set=workers.graceSeconds=21")
        run.release.wait_for_pods("workers", 4)
    after = {pod for part in ("coordinator", "workers") for pod in run.release.list_ready(part)}
    assert not before & after


def test_the_run_is_paused_and_resumed(run: PodRun) -> None:
    """Nothing is sent in between."""
    with run.hurting():
        paused = run.pause()
        assert paused["state"] == "paused"
        wait_until(lambda: run.release.count_wanted("workers") == 0, 60, "the workers rest")
        assert run.summary["accounted"] == paused["accounted"]
        run.resume()


def test_the_run_ends_by_itself_and_its_account_balances(run: PodRun) -> None:
    """Every request is accounted for once, in Loki as well, and the workers are scaled down.

    More workers end it sooner, now that nothing happens to them any more.
    """
    run.release.scale("workers", 8)
    summary = run.wait_for_end(_END_S)
    assert_completed(summary)
    wait_until(lambda: run.release.count_wanted("workers") == 0, 60, "the workers are scaled to none")
    wait_until_published(run.api)
    with run.release.open_loki() as loki:
        assert_published(loki, summary)


def test_dashboards_show_the_run(run: PodRun) -> None:
    """Each query of the dashboards gets data from the cluster's Loki, those about faults included."""
    now = int(time.time())
    with run.release.open_loki() as loki:
        grafana = Grafana(loki.url, now - 1800, now, {"run": run.run})
        queries = [query for query in list_queries() if query.dashboard == "oku-run"]
        empty = [str(query) for query in queries if query.is_lasting and not grafana.fetch(query)]
    assert queries
    assert empty == []


@contextmanager
def staying_ready(release: Release, component: str) -> Iterator[None]:
    """What happens in the block makes no pod of a component unready, however shortly."""
    before = release.read_ready_since(component)
    yield
    assert before
    assert release.read_ready_since(component) == before


def kill(run: PodRun, worker: str) -> bool:
    """Delete a pod without grace; whether the coordinator takes it for dead."""
    run.release.delete_pod(worker, "--force", "--grace-period=0")
    return run.is_lost_soon(worker)
