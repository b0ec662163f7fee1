import asyncio
import dataclasses
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.readiness import build_readiness
from tests.kit.coordinators.transactions import change
from tests.unit.coordinator.kube.twin import Kubernetes

from oku_coordinator.api.routes import build_api
from oku_coordinator.assembly import Assembly
from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.kube import facade as facade_module
from oku_coordinator.kube.cluster import Cluster
from oku_coordinator.kube.facade import KubeFacade
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.settings import CoordinatorSettings, KubeSettings
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

SETTINGS = KubeSettings(namespace="oku", workers="w", servers="s", max_workers=8, max_servers=4)


@pytest.fixture(autouse=True)
def pod(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    """This process is a pod."""
    monkeypatch.setattr(facade_module, "enter_cluster", lambda namespace: {"oku": cluster}[namespace])


async def test_the_facade_scales_until_it_is_ended(ledger: Ledger, kubernetes: Kubernetes) -> None:
    """It begins as soon as it is started."""
    change(ledger, create_run, "r1", Spec(urls=(Url("http://h/"),), workers=3), 0.0)
    facade = KubeFacade(SETTINGS, ["http://oku-server:8080"], ledger, LoopSignals())
    facade.start(Supervisor())
    async with asyncio.timeout(5):
        while kubernetes.replicas["w"] != 3:  # noqa: ASYNC110  # it is asked, it does not call
            await asyncio.sleep(0)
    await facade.end()
    assert facade.describe() == {"workers": 8, "servers": 4, "trouble": ""}
    assert facade.servers is not None


def test_where_there_are_no_delay_servers_none_may_be_scaled(ledger: Ledger) -> None:
    """The API tells 0 of them."""
    bare = KubeSettings(namespace="oku", workers="w")
    assert KubeFacade(bare, [], ledger, LoopSignals()).describe()["servers"] == 0


@pytest.mark.parametrize(
    ("urls", "host"),
    [
        (["http://oku-servers:8080"], "oku-servers"),
        (["http://10.0.0.1:8080"], None),
        (["http://one:8080", "http://two:8080"], None),
    ],
    ids=["name", "address", "several"],
)
def test_the_name_of_the_delay_servers_is_that_of_their_url(
    ledger: Ledger, urls: list[str], host: str | None
) -> None:
    """An address is not a name; of several names nobody knows which pod has which."""
    dns = KubeFacade(SETTINGS, urls, ledger, LoopSignals()).dns
    assert (dns and dns.host) == host


async def test_what_is_beyond_the_bounds_is_refused_when_it_is_submitted(ledger: Ledger) -> None:
    """The API refuses it, and says what the bounds are."""
    facade = KubeFacade(SETTINGS, ["http://oku-server:8080"], ledger, LoopSignals())
    counter = ServedCounter(NamedServers([]), ledger)
    readiness = build_readiness(ledger, kube=facade)
    runs = Runs(ledger, counter, LoopSignals(), BrokerTwin(), readiness)
    api = build_api(runs, Metrics(), "t", Troubles(), None, facade)
    headers = {"Authorization": "Bearer t"}
    async with TestClient[Any, Any](TestServer(api), headers=headers) as client:
        refused = await client.post("/api/runs", json={"workers": 9})
        assert refused.status == 400
        assert (await refused.json())["error"].startswith("workers: 9 is more than the 8")
        assert (await client.post("/api/runs", json={"workers": 8})).status == 201
        assert await (await client.get("/api/scaling")).json() == facade.describe()


def test_a_coordinator_has_the_facade_if_it_is_told_what_to_scale(
    coordinator_settings: CoordinatorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a run waits for its delay servers to be there, and to be seen."""
    parts = Assembly(
        dataclasses.replace(coordinator_settings, server_urls=(Url("http://127.0.0.1:1"),), kube=SETTINGS)
    )
    run = change(parts.base.ledger, create_run, "r1", Spec(), 0.0)
    assert parts.kube is not None
    assert parts.server_watch is not None
    assert not parts.installation.readiness.may_start(run)
    monkeypatch.setattr(parts.kube, "may_start", lambda _: True)
    assert not parts.installation.readiness.may_start(run)
    monkeypatch.setattr(parts.server_watch, "may_start", lambda _: True)
    assert parts.installation.readiness.may_start(run)
    parts.base.close()
