"""Finds the coordinator of a release in a cluster through the user's kube context, for `--kube`.

Its Service and the Secret with its token are found by labels, and a local port is forwarded to it for as
long as the command runs.
"""

import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from oku_cli.remote.api_token import GIVEN, read_token
from oku_cli.remote.endpoint import UnreachableError
from oku_cli.remote.kubectl import Kubectl
from oku_cli.remote.tunnel import Tunnel, open_tunnel
from oku_coordinator.kube.pods import Pod
from oku_core.errors import UserError

_LABELS = "app.kubernetes.io/name=oku,app.kubernetes.io/component=coordinator"
_INSTANCE = "app.kubernetes.io/instance"
_TOKEN_KEY = "token"  # noqa: S105  # the key, not the token


@dataclass(frozen=True)
class KubeEndpoint:
    """Refers to the coordinator of a release.

    Args:
        context: the kube context; empty for the current one.
        namespace: the namespace; empty for that of the context.
        release: the name of the release; empty if it is the only one.
        token: the token; empty to read it from the release's Secret.
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
        token = self.token or await self._find_token(kubectl, release)
        note = f"{GIVEN} is set and was used instead of the Secret of release {release}" if self.token else ""
        name, port = service["metadata"]["name"], find_port(service)
        async with AsyncExitStack() as stack:
            try:
                tunnel = await stack.enter_async_context(open_tunnel(build_forward(kubectl, name, port)))
            except UnreachableError as error:
                raise await _explain(kubectl, release, error) from error
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

    async def _find_token(self, kubectl: Kubectl, release: str) -> str:
        secrets = await kubectl.fetch("secrets", build_selector(release))
        for secret in secrets:
            if encoded := (secret.get("data") or {}).get(_TOKEN_KEY):
                try:
                    text = base64.b64decode(encoded, validate=True).decode()
                except (binascii.Error, UnicodeDecodeError):
                    break
                return read_token(text, f"--token: that in the Secret of release {release}")
        raise UserError(f"--token: release {release} has no Secret with its token, give it by --token")


@dataclass(frozen=True)
class ForwardedEndpoint:
    """Says where the coordinator of a release answers: at the local end of a tunnel.

    Args:
        tunnel: the tunnel to it.
        token: the token that its API requires.
        token_note: a note for the user whose token was refused; empty for none.
    """

    tunnel: Tunnel
    token: str
    token_note: str

    @property
    def url(self) -> str:
        """The URL of its API."""
        return self.tunnel.url

    def find_trouble(self) -> str:
        """Return what is wrong on the way to it; empty if nothing is known to be."""
        return self.tunnel.find_trouble()


def build_selector(release: str) -> str:
    """Build the label selector for the coordinator of a release, or of any release if that is empty."""
    return f"{_LABELS},{_INSTANCE}={release}" if release else _LABELS


def find_port(service: dict[str, Any]) -> int:
    """Return the port of the API, which is called `http`; 0 if the Service has none."""
    ports = service["spec"]["ports"]
    return int(next((port["port"] for port in ports if port.get("name") == "http"), 0))


def build_forward(kubectl: Kubectl, service: str, port: int) -> list[str]:
    """Build the command that forwards a free local port to a Service."""
    return kubectl.build_command("port-forward", "--address", "127.0.0.1", f"service/{service}", f":{port}")


async def _explain(kubectl: Kubectl, release: str, error: UnreachableError) -> UnreachableError:
    """The error with what keeps the pod of the coordinator from running, if Kubernetes says that."""
    try:
        pods = msgspec.convert(await kubectl.fetch("pods", build_selector(release)), list[Pod])
    except (UserError, UnreachableError, msgspec.ValidationError):
        return error  # it may be that pods cannot be seen either
    obstacle = next((pod.obstacle for pod in pods if pod.obstacle), "")
    said = f"--kube: the coordinator of release {release} is not running: {obstacle}"
    return UnreachableError(said) if obstacle else error


def _name_release(service: dict[str, Any]) -> str:
    metadata = service["metadata"]
    return str((metadata.get("labels") or {}).get(_INSTANCE, metadata["name"]))
