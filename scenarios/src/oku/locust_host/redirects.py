"""Has Locust's two clients follow redirections as every other client of Oku does.

They follow redirections themselves, as many as they are set to. Where they give up, each raises something
else, or an error that Locust takes for one of user code and does not count. What the spec has given to each
request, another origin does not get.
"""

from collections.abc import Iterator
from typing import Any

import locust.contrib.fasthttp
import requests
from geventhttpclient.useragent import RetriesExceeded, UnrewoundBodyError
from locust.clients import HttpSession
from locust.contrib.fasthttp import FastRequest, LocustUserAgent
from yarl import URL

from oku.locust_host.spec_identity import SpecIdentity
from oku_core.http_client.client_rules import NOT_A_URL, RedirectError, describe_excess, join_location

_NO_BODY = "a redirection of a request whose body cannot be sent again"


class RedirectFailureError(OSError):
    """A redirection that is not followed; its text is the reason. Locust counts the request as failed."""


class SessionRedirectFailureError(RedirectFailureError, requests.RequestException):
    """The same as requests raises errors."""


class RedirectingHttpSession(HttpSession):
    """The client of an `HttpUser`."""

    identity = SpecIdentity()
    """What stays with the origin that it was meant for."""
    spec_cert: str | tuple[str, str] | None = None
    """The client certificate of the spec, as requests has it."""

    def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
        """Take out what another origin must not get; requests calls this before it sends a request on."""
        super().rebuild_auth(prepared_request, response)
        self.identity.take_out(prepared_request.headers, response.request.url, prepared_request.url)

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
            self.identity.take_out(self.headers, str(asked), self.url)
        except UnrewoundBodyError:
            raise RedirectFailureError(_NO_BODY) from None
        except (RedirectError, ValueError) as error:
            raise RedirectFailureError(_explain(error)) from None


class _UserAgent(LocustUserAgent):
    """The client of a `FastHttpUser`."""

    request_type = _Request

    def _handle_error(self, error: BaseException, url: Any = None) -> BaseException:
        if isinstance(error, RetriesExceeded):  # all that it is told of by this name
            raise RedirectFailureError(describe_excess(self.max_redirects))
        handled: BaseException = super()._handle_error(error, url=url)
        return handled


def set_up_fast_client(identity: SpecIdentity) -> None:
    """Have the clients of all `FastHttpUser`s end so, and keep what is the spec's from other origins."""
    _Request.identity = identity
    module: Any = locust.contrib.fasthttp
    module.LocustUserAgent = _UserAgent


def _explain(error: Exception) -> str:
    return str(error) if isinstance(error, RedirectError) else NOT_A_URL
