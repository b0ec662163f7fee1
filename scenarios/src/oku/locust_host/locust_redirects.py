"""Has Locust's two clients follow redirections as every other client of Oku does.

They follow redirections themselves, as many as they are set to. Where they give up, each raises something
else, or an error that Locust takes for one of user code and does not count.

Both clients take all headers to any origin but `Authorization` and cookies. Another origin does not get what
the spec gives to each request; headers that the locustfile itself has set stay as the clients have them.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import locust.contrib.fasthttp
import requests
from geventhttpclient.useragent import RetriesExceeded, UnrewoundBodyError
from locust.clients import HttpSession
from locust.contrib.fasthttp import FastRequest, LocustUserAgent
from yarl import URL

from oku_core.http_client.redirects import (
    NOT_A_URL,
    RedirectError,
    check_other_origin,
    describe_excess,
    is_same_origin,
    join_location,
)
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import read_literally

_SEPARATORS = {"cookie": "; "}
_NO_BODY = "a redirection of a request whose body cannot be sent again"


class Headers(Protocol):
    """The headers of a request, in either client."""

    def items(self) -> Iterable[tuple[str, object]]:
        """Names and values."""
        ...

    def __delitem__(self, name: str, /) -> None:
        """Take a header away."""
        ...


class SpecIdentity:
    """The headers, credentials and certificate of a spec.

    Args:
        headers: those that every request gets.
        credentials: the value of `Authorization` for the user of the base URL; None if it has none.
        has_certificate: whether there is a client certificate.
    """

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        credentials: str | None = None,
        *,
        has_certificate: bool = False,
    ) -> None:
        self._values = {(name.lower(), value) for name, value in (headers or {}).items()}
        if credentials is not None:
            self._values.add(("authorization", credentials))
        self._has_certificate = has_certificate

    @classmethod
    def of_spec(cls, spec: Spec) -> "SpecIdentity":
        """That of a spec with its secrets."""
        return cls(build_headers(spec), _find_credentials(spec), has_certificate=spec.cert is not None)

    def check(self, asked: URL, following: URL, *, has_certificate: bool = True) -> None:
        """Check that a request may go on: another origin could ask for the certificate.

        Args:
            asked: the URL that sends it on.
            following: where it goes.
            has_certificate: whether it would present the spec's certificate.

        Raises:
            RedirectError: it may not.
        """
        if not is_same_origin(following, asked):
            has_certificate = has_certificate and self._has_certificate
            check_other_origin(following, has_body=False, has_certificate=has_certificate)

    def remove_from(self, headers: Headers, asked: str, following: str) -> None:
        """Take what the spec has said out of a request that goes on to another origin."""
        if not _is_same_origin(asked, following):
            names = {name.lower() for name, value in headers.items() if (name.lower(), value) in self._values}
            for name in names:
                del headers[name]


class RedirectFailureError(OSError):
    """A redirection that is not followed; its text is the reason. Locust counts the request as failed."""


class SessionRedirectFailureError(RedirectFailureError, requests.RequestException):
    """The same as requests raises errors."""


class RedirectingHttpSession(HttpSession):
    """The client of an `HttpUser`."""

    identity = SpecIdentity()
    """Headers and credentials that another origin must not get."""
    spec_cert: str | tuple[str, str] | None = None
    """The client certificate of the spec, as requests has it."""

    def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
        """Take out what another origin must not get; requests calls this before it sends a request on."""
        super().rebuild_auth(prepared_request, response)
        self.identity.remove_from(prepared_request.headers, response.request.url, prepared_request.url)

    def resolve_redirects(self, *args: Any, **kwargs: Any) -> Any:
        """Follow redirections, or give the next request without sending it."""
        following = super().resolve_redirects(*args, **kwargs)
        if kwargs.get("yield_requests"):
            return following
        return self._follow(args[0], following, has_own=kwargs.get("cert") != self.spec_cert)

    def _follow(self, last: Any, following: Iterator[Any], *, has_own: bool) -> Iterator[Any]:
        while location := self.get_redirect_target(last):
            try:
                asked = URL(last.url)
                self.identity.check(asked, join_location(asked, location), has_certificate=not has_own)
                last = next(following)
            except StopIteration:
                return
            except requests.TooManyRedirects:
                raise SessionRedirectFailureError(describe_excess(self.max_redirects)) from None
            except requests.exceptions.UnrewindableBodyError:
                raise SessionRedirectFailureError(_NO_BODY) from None
            except (RedirectError, ValueError) as error:  # those of requests about URLs are ValueErrors
                raise SessionRedirectFailureError(_explain(error)) from None
            yield last


class _Request(FastRequest):
    """A request of a `FastHttpUser`."""

    identity = SpecIdentity()

    def redirect(self, code: int, location: str) -> None:
        """Turn into the request that a redirection asks for."""
        try:
            asked = URL(self.url)
            self.identity.check(asked, join_location(asked, location))
            super().redirect(code, location)
            self.identity.remove_from(self.headers, str(asked), self.url)
        except UnrewoundBodyError:
            raise RedirectFailureError(_NO_BODY) from None
        except (RedirectError, ValueError) as error:
            raise RedirectFailureError(_explain(error)) from None


class _UserAgent(LocustUserAgent):
    """The client of a `FastHttpUser`."""

    request_type = _Request

    def _handle_error(self, error: BaseException, url: Any = None) -> BaseException:
        if isinstance(error, RetriesExceeded):  # it has no other cause
            raise RedirectFailureError(describe_excess(self.max_redirects))
        if isinstance(error, RuntimeError) and str(error).startswith("Proxy "):  # Locust does not count these
            raise ConnectionError(str(error)) from None
        handled: BaseException = super()._handle_error(error, url=url)
        return handled


def set_up_fast_client(identity: SpecIdentity) -> None:
    """Patch the client of `FastHttpUser`: the identity of the spec stays with its origin."""
    _Request.identity = identity
    module: Any = locust.contrib.fasthttp
    module.LocustUserAgent = _UserAgent


def _explain(error: Exception) -> str:
    return str(error) if isinstance(error, RedirectError) else NOT_A_URL


def build_headers(spec: Spec) -> dict[str, str]:
    """The headers that a spec gives to every request, as they are sent.

    Both clients send one line for each name, so several values are joined (RFC 9110, section 5.3; for cookies
    RFC 6265, section 5.4).
    """
    values: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for header in spec.headers:
        name = names.setdefault(header.name.lower(), header.name)
        values.setdefault(name, []).append(read_literally(header.value))
    return {name: _SEPARATORS.get(name.lower(), ", ").join(each) for name, each in values.items()}


def _is_same_origin(asked: str, following: str) -> bool:
    try:
        return is_same_origin(URL(following), URL(asked))
    except ValueError:  # such as mailto, which has no origin
        return False


def _find_credentials(spec: Spec) -> str | None:
    """What Locust makes of a user and a password in the base URL."""
    if spec.base_url is None:
        return None
    parts = urlsplit(str(spec.base_url))
    if not parts.username or not parts.password:
        return None
    text = f"{unquote(parts.username)}:{unquote(parts.password)}"
    return f"Basic {base64.b64encode(text.encode('latin-1')).decode()}"
