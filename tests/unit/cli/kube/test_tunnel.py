import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from tests.kit.runs.local_run import is_alive
from tests.unit.cli.kubectl_on_path import KubectlOnPath, find_forwards, wait_until

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import CoordinatorAddress, UnreachableError
from oku_cli.kube import tunnel as tunnel_module
from oku_cli.kube.kube_endpoint import KubeEndpoint

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


class Opened:
    """Refers to a coordinator whose address is already known.

    Args:
        address: of it.
    """

    flags = ()

    def __init__(self, address: CoordinatorAddress) -> None:
        self._address = address

    @asynccontextmanager
    async def open(self) -> AsyncIterator[CoordinatorAddress]:
        """The address."""
        yield self._address


PENDING = "unable to forward port because pod is not running. Current status=Pending"


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tunnels that look often and wait little."""
    monkeypatch.setattr(tunnel_module, "POLL_S", 0.1)
    monkeypatch.setattr(tunnel_module, "FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(tunnel_module, "LONGEST_PAUSE_S", 0.2)
    monkeypatch.setattr(tunnel_module, "PROBE_TIMEOUT", aiohttp.ClientTimeout(total=0.5))


async def test_a_port_that_cannot_be_forwarded_is_said(kubectl: KubectlOnPath) -> None:
    """The error has kubectl's reason."""
    kubectl.set(errors={"port-forward": f"error: {PENDING}"})
    with pytest.raises(UnreachableError, match=rf"no port can be forwarded .*: {PENDING}"):
        async with KubeEndpoint().open():
            pass


@needs_proc
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("cause", ["it ends", "it leads nowhere"])
async def test_a_tunnel_that_breaks_is_built_again(kubectl: KubectlOnPath, cause: str) -> None:
    """The new one has a port of its own; a coordinator that was replaced is reached on the next try."""
    async with KubeEndpoint().open() as endpoint:
        before = find_forwards(kubectl)
        os.kill(before[0], signal.SIGKILL if cause == "it ends" else signal.SIGSTOP)
        await wait_until(lambda: find_forwards(kubectl) not in (before, []))
        async with Client(Opened(endpoint)) as client:
            await wait_until_answered(client)
    assert sum(call.endswith(" :8700") for call in kubectl.calls) > 1
    assert find_forwards(kubectl) == []


@needs_proc
async def test_nothing_is_sent_to_a_port_whose_child_is_gone(kubectl: KubectlOnPath) -> None:
    """Somebody else may listen there by now and would receive the token."""
    async with KubeEndpoint().open() as endpoint, Client(Opened(endpoint)) as client:
        port = int(endpoint.url.rpartition(":")[2])
        [pid] = find_forwards(kubectl)
        os.kill(pid, signal.SIGKILL)
        await wait_until(lambda: not is_alive(pid))
        with await take_port(port) as squatter:
            squatter.settimeout(0.05)
            with pytest.raises(UnreachableError, match="kubectl port-forward ended: signal 9"):
                await client.fetch_runs()
            with pytest.raises(TimeoutError):
                squatter.accept()
    assert not any(str(port) in call for call in kubectl.calls)


async def take_port(port: int) -> socket.socket:
    """Listen at a port once it is free: any connection of this machine may have it for a moment."""
    taken: list[socket.socket] = []

    def is_taken() -> bool:
        with contextlib.suppress(OSError):
            taken.append(socket.create_server(("127.0.0.1", port)))
        return bool(taken)

    await wait_until(is_taken)
    return taken[0]


@needs_proc
@pytest.mark.usefixtures("eager")
async def test_what_keeps_a_tunnel_from_being_built_again_is_known(kubectl: KubectlOnPath) -> None:
    """The error has kubectl's words until the tunnel works again."""
    async with KubeEndpoint().open() as endpoint, Client(Opened(endpoint)) as client:
        assert endpoint.find_trouble() == ""
        kubectl.set(errors={"port-forward": f"error: {PENDING}"})
        os.kill(find_forwards(kubectl)[0], signal.SIGKILL)
        await wait_until(lambda: bool(endpoint.find_trouble()))
        assert endpoint.find_trouble() == "kubectl port-forward ended: signal 9"
        await wait_until(lambda: PENDING in endpoint.find_trouble())
        with pytest.raises(UnreachableError) as caught:
            await client.fetch_runs()
        kubectl.set(errors={})
        await wait_until_answered(client)
        await wait_until(lambda: not endpoint.find_trouble())
    assert str(caught.value) == (
        f"--kube: the coordinator does not answer: kubectl port-forward ended: {PENDING}"
    )


@needs_proc
@pytest.mark.usefixtures("eager")
async def test_a_tunnel_that_cannot_be_built_again_is_tried_again(
    kubectl: KubectlOnPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may fail to start for a moment for any reason; here its log has no folder."""
    folders = kubectl.folder / "temporary"
    folders.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folders))
    async with KubeEndpoint().open() as endpoint, Client(Opened(endpoint)) as client:
        [folder] = folders.iterdir()
        aside = folder.rename(kubectl.folder / "aside")
        os.kill(find_forwards(kubectl)[0], signal.SIGKILL)
        await wait_until(lambda: "cannot be started: [Errno 2]" in endpoint.find_trouble())
        aside.rename(folder)
        await wait_until_answered(client)


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
