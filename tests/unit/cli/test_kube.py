import asyncio
import base64
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.unit.cli import fake_kubectl

from oku_cli import kubectl as kubectl_module
from oku_cli import tunnel as tunnel_module
from oku_cli.client import Client, UnreachableError
from oku_cli.kube import KubeEndpoint, build_selector, find_port
from oku_core.errors import UserError

TOKEN = "from-the-secret"
COORDINATOR = "app.kubernetes.io/name=oku,app.kubernetes.io/component=coordinator"


class Kubectl:
    """A `kubectl` on the PATH that answers what it is told to."""

    def __init__(self, folder: Path, target: list[Any]) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {
            "calls": str(folder / "calls"),
            "context": "kind",
            "target": target,
            "services": [build_service("demo")],
            "secrets": [build_secret(TOKEN)],
        }
        program = folder / "kubectl"
        program.write_text(f"#!{sys.executable}\n{Path(fake_kubectl.__file__).read_text()}")
        program.chmod(0o755)
        self.set()

    def set(self, **settings: Any) -> None:
        """Change what it answers."""
        self.settings |= settings
        (self.folder / "kubectl.json").write_text(json.dumps(self.settings))

    @property
    def calls(self) -> list[str]:
        """How it was called."""
        return (self.folder / "calls").read_text().splitlines()


def build_service(release: str, *ports: dict[str, Any]) -> dict[str, Any]:
    """The Service of a coordinator."""
    return {
        "metadata": {"name": f"{release}-oku", "labels": {"app.kubernetes.io/instance": release}},
        "spec": {"ports": list(ports) or [{"name": "http", "port": 8700}]},
    }


def build_secret(token: str, key: str = "token") -> dict[str, Any]:
    """A Secret with one key."""
    return {"metadata": {"name": "s"}, "data": {key: base64.b64encode(token.encode()).decode()}}


@pytest.fixture
async def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Kubectl]:
    """One that forwards to a coordinator with one run."""

    async def list_runs(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        return web.json_response([{"run": "r1"}])

    async def probe(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/api/runs", list_runs), web.get("/healthz", probe)])
    async with TestServer(app) as server:
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        yield Kubectl(tmp_path, ["127.0.0.1", server.port])


async def test_the_coordinator_is_found_and_reached(kubectl: Kubectl) -> None:
    """By labels, in the current context and its namespace, with the token of the Secret."""
    async with Client(KubeEndpoint()) as client:
        assert await client.fetch_runs() == [{"run": "r1"}]
    services, secrets, forward = kubectl.calls
    assert services == f"--request-timeout=10s get services --selector {COORDINATOR} --output json"
    assert f"get secrets --selector {COORDINATOR},app.kubernetes.io/instance=demo" in secrets
    assert forward == "port-forward --address 127.0.0.1 service/demo-oku :8700"


async def test_context_namespace_and_release_are_handed_on(kubectl: Kubectl) -> None:
    """In every call, and in the command that goes on with a run."""
    place = KubeEndpoint(context="c", namespace="n", release="demo")
    async with Client(place):
        pass
    assert all("--context c --namespace n" in call for call in kubectl.calls)
    assert "app.kubernetes.io/instance=demo" in kubectl.calls[0]
    assert place.flags == ["--kube", "--context", "c", "--namespace", "n", "--release", "demo"]
    assert KubeEndpoint().flags == ["--kube"]


async def test_a_token_that_is_given_is_not_looked_for(kubectl: Kubectl) -> None:
    """Not everybody may read Secrets."""
    kubectl.set(errors={"get secrets": "Error from server (Forbidden): secrets is forbidden"})
    async with Client(KubeEndpoint(token=TOKEN)) as client:
        assert await client.fetch_runs()


async def test_without_kubectl_nothing_can_be_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Which is said."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^--kube: kubectl is not on the PATH"):
        await enter(KubeEndpoint())


@pytest.mark.parametrize(
    ("place", "settings", "message"),
    [
        (KubeEndpoint(), {"services": []}, "there is no Oku in the namespace of the kube context; install"),
        (
            KubeEndpoint(namespace="n", release="x"),
            {"services": []},
            "there is no release x of Oku in namespace n;",
        ),
        (
            KubeEndpoint(namespace="n"),
            {"services": [build_service("b"), build_service("a")]},
            "there are several releases in namespace n, name one by --release: a, b",
        ),
        (KubeEndpoint(), {"secrets": []}, "--token: release demo has no Secret with its token"),
        (KubeEndpoint(), {"secrets": [build_secret(TOKEN, "other")]}, "--token: release demo has no Secret"),
        (KubeEndpoint(), {"secrets": [{"data": {"token": "="}}]}, "--token: release demo has no Secret"),
        (
            KubeEndpoint(),
            {"context": "", "errors": {"get": "The connection to the server localhost:8080 was refused"}},
            "there is no current kube context, name one by --context",
        ),
        (
            KubeEndpoint(context="x"),
            {"errors": {"get": 'error: context "x" does not exist'}},
            '--kube: context "x" does not exist',
        ),
        (
            KubeEndpoint(),
            {"errors": {"get": 'Error from server (Forbidden): services is forbidden: User "u" cannot list'}},
            '--kube: Error from server (Forbidden): services is forbidden: User "u"',
        ),
    ],
)
async def test_what_the_user_can_put_right_is_a_mistake(
    kubectl: Kubectl, place: KubeEndpoint, settings: dict[str, Any], message: str
) -> None:
    """Of one line, with what to do."""
    kubectl.set(**settings)
    with pytest.raises(UserError) as caught:
        await enter(place)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        "E1121 memcache.go:265] couldn't get list\nUnable to connect to the server: dial tcp: i/o timeout",
        "",
    ],
)
async def test_a_cluster_that_does_not_answer_is_out_of_reach(kubectl: Kubectl, error: str) -> None:
    """The last line says why, if anything does."""
    kubectl.set(errors={"get": error})
    reason = error.splitlines()[-1] if error else "kubectl gave no reason"
    with pytest.raises(UnreachableError, match=f"^--kube: the cluster does not answer: {reason}$"):
        await enter(KubeEndpoint())


async def test_nobody_waits_for_a_kubectl_that_hangs(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may ask for a password that nobody types."""
    (kubectl.folder / "kubectl").write_text("#!/bin/sh\nexec sleep 10\n")
    monkeypatch.setattr(kubectl_module, "_TIMEOUT_S", 0.1)
    with pytest.raises(UserError, match="no answer within 0 s"):
        await enter(KubeEndpoint())


async def test_a_port_that_cannot_be_forwarded_is_said(kubectl: Kubectl) -> None:
    """With kubectl's reason."""
    kubectl.set(errors={"port-forward": "error: unable to forward port because pod is not running"})
    with pytest.raises(UnreachableError, match=r"no port can be forwarded .*: unable to forward port"):
        await enter(KubeEndpoint())


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("cause", ["it ends", "it leads nowhere"])
async def test_a_tunnel_that_breaks_is_built_again(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """At the same port: a coordinator that was replaced is reached again by trying again."""
    monkeypatch.setattr(tunnel_module, "_LOOK_S", 0.1)
    monkeypatch.setattr(tunnel_module, "_FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(tunnel_module, "_PROBE_TIMEOUT", aiohttp.ClientTimeout(total=0.2))
    async with KubeEndpoint().open() as endpoint:
        before = find_forwards(kubectl)
        os.kill(before[0], signal.SIGKILL if cause == "it ends" else signal.SIGSTOP)
        await wait_until(lambda: find_forwards(kubectl) not in (before, []))
        async with Client(endpoint) as client:
            await wait_until_answered(client)
    assert find_forwards(kubectl) == []
    assert kubectl.calls[-1].endswith(f"{endpoint.url.rpartition(':')[2]}:8700")


def test_the_port_of_the_api_is_the_one_called_http() -> None:
    """Or the only one."""
    metrics, http = {"name": "metrics", "port": 9000}, {"name": "http", "port": 80}
    assert find_port(build_service("a", metrics, http)) == 80
    assert find_port(build_service("a", {"port": 8701})) == 8701


def test_a_release_is_found_by_its_labels() -> None:
    """Which the chart sets."""
    assert build_selector("") == COORDINATOR
    assert build_selector("a") == f"{COORDINATOR},app.kubernetes.io/instance=a"


async def enter(place: KubeEndpoint) -> None:
    """Open and close the way there."""
    async with place.open():
        pass


def find_forwards(kubectl: Kubectl) -> list[int]:
    """The processes that forward a port."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if (
                str(kubectl.folder / "kubectl").encode() in command
                and b"port-forward" in command
                and state != "Z"
            ):
                found.append(int(entry.name))
    return found


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what others do."""
    async with asyncio.timeout(8):
        while not condition():  # noqa: ASYNC110  # processes are asked, they do not call
            await asyncio.sleep(0.02)


async def wait_until_answered(client: Client) -> None:
    """Try again as a driver does."""
    async with asyncio.timeout(8):
        while True:
            try:
                assert await client.fetch_runs()
            except UnreachableError:
                await asyncio.sleep(0.05)
            else:
                return
