"""Gives the clients of Locust's users what the spec says of requests: headers, limits, TLS, a proxy.

What a locustfile says of these itself goes first. Clients that a locustfile makes on its own are left alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import locust.user.users
from locust import FastHttpUser

from oku.locust_host.locust_redirects import (
    RedirectingHttpSession,
    SpecIdentity,
    build_headers,
    set_up_fast_client,
)
from oku.sandbox.user_module import LoadError
from oku_core.http_client.tls import TlsError, build_tls
from oku_core.spec.files import EVERYWHERE, SpecFiles
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import find_file_reference


def set_up_clients(spec: Spec, paths: Mapping[str, str]) -> None:
    """Have the clients of all users do as the spec says.

    Args:
        spec: the spec, with its secrets.
        paths: where its files are, by their digests.

    Raises:
        LoadError: a certificate cannot be used.
    """
    headers = build_headers(spec)
    verify, cert = _find_certificates(spec, paths)
    proxy = None if spec.proxy is None else str(spec.proxy)

    class OkuHttpSession(RedirectingHttpSession):
        """The client of an `HttpUser`."""

        identity = SpecIdentity.of_spec(spec)
        spec_cert = cert

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.headers.update(headers)
            self.verify, self.cert = verify, cert
            if proxy is not None:
                self.proxies = {"http": proxy, "https": proxy}

        def send(self, request: Any, **kwargs: Any) -> Any:
            if kwargs.get("timeout") is None:
                kwargs["timeout"] = spec.timeout_s
            return super().send(request, **kwargs)

    users: Any = locust.user.users
    users.HttpSession = OkuHttpSession
    set_up_fast_client(OkuHttpSession.identity)
    FastHttpUser.network_timeout = FastHttpUser.connection_timeout = spec.timeout_s
    if headers:
        FastHttpUser.default_headers = headers
    if spec.proxy is not None:
        FastHttpUser.proxy_host, FastHttpUser.proxy_port = _split_proxy(spec)
    if spec.cacert is not None or spec.cert is not None:
        _set_up_tls(spec, paths)


def _find_certificates(
    spec: Spec, paths: Mapping[str, str]
) -> tuple[bool | str, str | tuple[str, str] | None]:
    """Which certificates requests trusts, and which ones it shows."""
    cacert, cert, key = (_find_path(text, paths) for text in (spec.cacert, spec.cert, spec.key))
    verify = False if spec.insecure else cacert or True
    return verify, cert if cert is None or key is None else (cert, key)


def _find_path(text: str | None, paths: Mapping[str, str]) -> str | None:
    reference = find_file_reference(text)
    return text if reference is None else paths[reference.digest]


def _set_up_tls(spec: Spec, paths: Mapping[str, str]) -> None:
    files = SpecFiles(EVERYWHERE.folders, lambda digest: Path(paths[digest]))
    try:
        context = build_tls(spec, files)
    except TlsError as error:
        raise LoadError(str(error)) from error
    FastHttpUser.insecure = spec.insecure
    FastHttpUser.ssl_context_factory = staticmethod(lambda: context)


def _split_proxy(spec: Spec) -> tuple[str, int]:
    assert spec.proxy is not None
    host, _, port = spec.proxy.authority.rpartition("@")[2].rpartition(":")
    return (host, int(port)) if host and port.isdigit() else (spec.proxy.host, 80)
