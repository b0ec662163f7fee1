"""User code in the pods of workers: what it is kept from, and what becomes of a run whose pod is killed."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.kit.coordinators.coordinator import CoordinatorApi
from tests.kit.kubernetes.cluster import Cluster
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until
from tests.kit.user_code import build_code_spec, run_code

_ITERATIONS, _WORKERS, _STEP = 20_000, 2, 1_500
_VALUES = {
    "loki.enabled": False,
    "grafana.sidecar.datasource": False,
    "allowUserCode": True,
    "scaling.minServers": 1,
    "scaling.defaultWorkers": 1,
    # Some of the requests in flight always have seconds to go: a worker that is killed cannot drain.
    "servers.delay": "lognormal:10ms,2",
    "workers.userCodeMemory": "250MB",
    "workers.userCodeEnv": ["TIER"],
    "workers.pod.extraEnv": [{"name": "TIER", "value": "test"}, {"name": "DEPOT", "value": "hunter2"}],
}
_LOAD = """
import aiohttp

session = None

async def scenario(index):
    global session
    if session is None:
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    for name in ("first", "second"):
        async with session.get(f"http://oku-servers:8080/{name}/{index}") as answer:
            assert answer.status == 200
            await answer.read()
"""
_LOOK = """
import os, pathlib

def is_readable(path):
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError:
        return False
    return True

async def scenario(index):
    parent = os.getppid()
    places = [f"/proc/{parent}/{name}" for name in ("environ", "maps", "mem")]
    places += ["/run/oku/message-key", "/var/run/secrets/kubernetes.io/serviceaccount/token"]
    seen = [path for path in places if is_readable(path)]
    seen += [name for name in os.environ if name.startswith("OKU_") or name == "DEPOT"]
    if seen or os.environ["TIER"] != "test" or not is_readable(os.__file__):
        raise RuntimeError(f"sees {seen}")
"""
_LOCUSTFILE = """
from locust import FastHttpUser, HttpUser, task

class Fast(FastHttpUser):
    host = "http://oku-servers:8080"

    @task
    def ask(self):
        self.client.get(f"/fast/{self.oku.index}", name="fast")

class Plain(HttpUser):
    host = "http://oku-servers:8080"

    @task
    def ask(self):
        self.client.get(f"/plain/{self.oku.index}", name="plain")
"""
_GREEDY = """
async def scenario(index):
    held = b"x" * 500_000_000
"""


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Iterator[Release]:
    """One that allows user code."""
    with cluster.make_namespace() as namespace:
        release = Release(cluster, namespace, values=_VALUES)
        release.install()
        yield release


def test_user_code_sees_nothing_of_its_worker(release: Release) -> None:
    """No variable, no key, no memory, no token of a service account."""
    with release.open_api() as api:
        summary = run_code(api, {"scenario.py": _LOOK}, 120, requests=4, users=1)
    assert summary["outcomes"]["ok"] == 4, summary["failures"]


def test_locustfiles_are_run_in_pods(release: Release) -> None:
    """By both clients of Locust, within the same limits and on a file system that is read-only."""
    with release.open_api() as api:
        code = {"locustfile.py": _LOCUSTFILE}
        # One in a thousand answers takes longer than the 5 s of other tests.
        summary = run_code(api, code, 200, engine="locust", requests=1_000, users=10, timeout="5m")
    assert_completed(summary)
    assert summary["outcomes"]["ok"] == 1_000, summary["failures"]
    assert {each["name"] for each in summary["inner_requests"]} == {"GET fast", "GET plain"}


def test_user_code_that_takes_too_much_memory_does_not_end_its_pod(release: Release) -> None:
    """It gets an exception, before the limit of the container ends all of it."""
    with release.open_api() as api:
        summary = run_code(api, {"scenario.py": _GREEDY}, 120, requests=10, users=1)
    assert_completed(summary)
    assert summary["outcomes"]["exception"] == 10
    assert [failure["reason"].partition(":")[0].split()[0] for failure in summary["failures"]] == [
        "MemoryError"
    ]
    assert count_restarts(release) == 0


def test_iterations_are_counted_once_though_a_pod_is_killed(release: Release) -> None:
    """What it had in hand, and little more, is carried out again by another one."""
    with release.open_api() as api:
        spec = build_code_spec(api, {"scenario.py": _LOAD}, requests=_ITERATIONS, users=40, workers=_WORKERS)
        run = api.submit(**spec)
        # The node kills after a second or two, a busy one so late that a worker may have drained by then.
        assert any(_kill_one(release, api, run) for _ in range(3)), "no worker is lost"
        summary = api.wait_for_state(run, "completed", 400)
    assert_completed(summary)
    assert summary["outcomes"]["ok"] == _ITERATIONS, summary["failures"]
    lost = [each for each in summary["workers"] if each["lost"]]
    assert lost
    # Of each that is lost: what it had in hand, and 12 s of its work at most.
    fastest = max(each["requests"] for each in summary["workers"])
    assert 0 < summary["resent_at_most"] <= len(lost) * fastest


def _kill_one(release: Release, api: CoordinatorApi, run: str) -> bool:
    """Delete the pod of a worker without grace, some iterations later; whether it is taken for dead soon."""
    begun = api.summary(run)["accounted"]
    wait_until(lambda: api.summary(run)["accounted"] > begun + _STEP, 120, "the run goes on", 0.3)
    there = set(release.list_ready("workers"))
    victim = next(each["name"] for each in api.summary(run)["workers"] if each["name"] in there)
    release.delete_pod(victim, "--force", "--grace-period=0")

    def is_lost() -> bool:
        return any(each["name"] == victim and each["lost"] for each in api.summary(run)["workers"])

    with suppress(AssertionError):
        wait_until(is_lost, 20, f"{victim} is lost", 0.3)
    return is_lost()


def test_a_release_that_does_not_allow_it_refuses_user_code(release: Release) -> None:
    """As each does unless it is told to; it says by which value."""
    release.upgrade("--set=allowUserCode=false")
    with release.open_api() as api:
        spec: dict[str, Any] = build_code_spec(api, {"scenario.py": _LOAD}, requests=1)
        status, answer = api.call("POST", "/api/runs", spec)
    assert (status, "allowUserCode: true" in answer["error"]) == (403, True)


def count_restarts(release: Release) -> int:
    """How often containers of workers were started again."""
    pods = release.fetch_pods("workers")
    assert pods
    return sum(each["restartCount"] for pod in pods for each in pod["status"]["containerStatuses"])
