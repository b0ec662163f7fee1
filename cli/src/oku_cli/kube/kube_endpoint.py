"""Finds the coordinator of a release in a cluster through the user's kube context, for `--kube`.

Its Service is found by labels; an annotation names the key of the Secret that has the token. A local port is
forwarded to the Service for as long as the command runs.
"""

import base64
import binascii
import string
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from oku_cli.backends.coordinator_ref import GIVEN, UnreachableError, read_token
from oku_cli.kube.kube_pods import INSTANCE, KubePods, build_selector
from oku_cli.kube.kubectl import Kubectl
from oku_cli.kube.tunnel import Tunnel, open_tunnel
from oku_cli.terminal.printable import write_error
from oku_core.errors import UserError

TOKEN_ANNOTATION = "oku/token-secret"  # noqa: S105  # where the token is, not the token
"""Of the Service: `SECRET/KEY`."""
POD_TIMEOUT_S = 5
"""How long `kubectl` waits for a pod where there is none; a tunnel tries again anyway."""
_NAME_CHARACTERS = frozenset(string.ascii_lowercase + string.digits + "-.")
_KEY_CHARACTERS = _NAME_CHARACTERS | frozenset(string.ascii_uppercase + "_")


@dataclass(frozen=True)
class KubeEndpoint:
    """Refers to the coordinator of a release. Empty values mean the kube context's, or the only ones.

    Args:
        token: the token; empty to read it from the Secret that the Service of the release names.
    """

    context: str = ""
    namespace: str = ""
    release: str = ""
    token: str = ""

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name it in a command."""
        given = (("--context", self.context), ("--namespace", self.namespace), ("--release", self.release))
        return ["--kube", *(word for flag, value in given if value for word in (flag, value))]

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ForwardedEndpoint"]:
        """Find the coordinator, and forward a port to it as long as the context lasts.

        Raises:
            UserError: there is no kubectl, no context, no release or several, or no right to see it.
            UnreachableError: the cluster or the coordinator does not answer.
        """
        kubectl = Kubectl(self.context, self.namespace)
        service = await self._find_service(kubectl)
        release = _name_release(service)
        token = self.token or await _read_token(kubectl, service)
        note = f"{GIVEN} is set and was used instead of the Secret of release {release}" if self.token else ""
        name, port = service["metadata"]["name"], find_port(service)
        pods = KubePods(kubectl, release)
        async with AsyncExitStack() as stack:
            forward = build_forward(kubectl, name, port)
            try:
                tunnel = await stack.enter_async_context(open_tunnel(forward, pods.explain))
            except UnreachableError as error:
                obstacle = await pods.explain()
                raise (_build_error(pods, obstacle) if obstacle else error) from error
            await _check(tunnel, pods)
            yield ForwardedEndpoint(tunnel, token, note)

    async def _find_service(self, kubectl: Kubectl) -> dict[str, Any]:
        found = await kubectl.fetch("services", build_selector(self.release))
        services = [service for service in found if find_port(service)]  # others are for workers
        if len(services) == 1:
            return services[0]
        where = f"namespace {self.namespace}" if self.namespace else "the namespace of the kube context"
        if services:
            names = ", ".join(sorted(map(_name_release, services)))
            raise UserError(f"--kube: there are several releases in {where}, name one by --release: {names}")
        what = f"no release {self.release} of Oku" if self.release else "no Oku"
        raise UserError(f"--kube: there is {what} in {where}; install it, or name another by --namespace")


@dataclass(frozen=True)
class ForwardedEndpoint:
    """The `CoordinatorAddress` of the coordinator of a release: the local end of a tunnel."""

    tunnel: Tunnel
    token: str
    token_note: str

    @property
    def url(self) -> str:
        """The URL of its API."""
        return self.tunnel.url

    def find_trouble(self) -> str:
        """Return the known fault of the way to it; empty if there is none."""
        return self.tunnel.find_trouble()


def find_port(service: dict[str, Any]) -> int:
    """Return the port of the API, which is called `http`; 0 if the Service has none."""
    ports = service["spec"]["ports"]
    return int(next((port["port"] for port in ports if port.get("name") == "http"), 0))


def build_forward(kubectl: Kubectl, service: str, port: int) -> list[str]:
    """Build the command that forwards a free local port to a Service."""
    flags = ("--address", "127.0.0.1", "--pod-running-timeout", f"{POD_TIMEOUT_S}s")
    return kubectl.build_command("port-forward", *flags, f"service/{service}", f":{port}")


async def _read_token(kubectl: Kubectl, service: dict[str, Any]) -> str:
    """Read the token from the Secret that the Service names; no other Secret is asked for."""
    release = _name_release(service)
    where = str((service["metadata"].get("annotations") or {}).get(TOKEN_ANNOTATION, ""))
    name, _, key = where.partition("/")
    if not (name and key and _NAME_CHARACTERS.issuperset(name) and _KEY_CHARACTERS.issuperset(key)):
        said = f"{TOKEN_ANNOTATION} of its Service is {where!r}" if where else f"without {TOKEN_ANNOTATION}"
        raise UserError(f"--token: release {release} names no Secret ({said}): upgrade it, or give --token")
    place = f"key {key} of Secret {name}"
    try:
        secret = await kubectl.fetch_one("secret", name)
    except UserError as error:
        reason = str(error).removeprefix("--kube: ")
        raise UserError(f"--token: {place} of release {release} cannot be read: {reason}") from error
    try:
        text = base64.b64decode(str((secret.get("data") or {})[key]), validate=True).decode()
    except KeyError:
        raise UserError(f"--token: Secret {name} of release {release} has no key {key}") from None
    except (binascii.Error, UnicodeDecodeError):
        raise UserError(f"--token: {place} of release {release} is no text") from None
    return read_token(text, f"--token: {place} of release {release}")


async def _check(tunnel: Tunnel, pods: KubePods) -> None:
    """Ask Kubernetes about a coordinator that does not answer, or has no broker."""
    status = await tunnel.probe("/readyz")
    if status is None and (obstacle := await pods.explain()):
        raise _build_error(pods, obstacle)
    if status == HTTPStatus.SERVICE_UNAVAILABLE and (obstacle := await pods.find_broker_obstacle()):
        write_error(f"--kube: the broker of release {pods.release} is not running: {obstacle}")


def _build_error(pods: KubePods, obstacle: str) -> UnreachableError:
    return UnreachableError(f"--kube: the coordinator of release {pods.release} is not running: {obstacle}")


def _name_release(service: dict[str, Any]) -> str:
    metadata = service["metadata"]
    return str((metadata.get("labels") or {}).get(INSTANCE, metadata["name"]))
