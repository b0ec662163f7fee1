"""Has Locust's two clients end a redirection that leads nowhere as every other client of Oku does.

They follow redirections themselves, by their own rules and as many as they are set to. Where they give up,
each raises something else, or an error that Locust takes for one of user code and does not count.
"""

from collections.abc import Iterator
from typing import Any

import locust.contrib.fasthttp
import requests
from geventhttpclient.useragent import RetriesExceeded, UnrewoundBodyError
from locust.clients import HttpSession
from locust.contrib.fasthttp import FastRequest, LocustUserAgent
from yarl import URL

from oku_core.http_client.redirection import NOT_A_URL, RedirectError, describe_excess, join_location

_NO_BODY = "a redirection of a request whose body cannot be sent again"


class RedirectFailureError(OSError):
    """A redirection that is not followed; its text is the reason. Locust counts the request as failed."""


class SessionRedirectFailureError(RedirectFailureError, requests.RequestException):
    """The same as requests raises errors."""


class RedirectingHttpSession(HttpSession):
    """The client of an `HttpUser`."""

    def resolve_redirects(self, *args: Any, **kwargs: Any) -> Any:
        """Follow redirections, or give the next request without sending it."""
        following = super().resolve_redirects(*args, **kwargs)
        return following if kwargs.get("yield_requests") else self._follow(args[0], following)

    def _follow(self, last: Any, following: Iterator[Any]) -> Iterator[Any]:
        while location := self.get_redirect_target(last):
            try:
                join_location(URL(last.url), location)
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

    def redirect(self, code: int, location: str) -> None:
        """Turn into the request that a redirection asks for."""
        try:
            join_location(URL(self.url), location)
            super().redirect(code, location)
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


def set_up_fast_client() -> None:
    """Have the clients of all `FastHttpUser`s end so."""
    module: Any = locust.contrib.fasthttp
    module.LocustUserAgent = _UserAgent


def _explain(error: Exception) -> str:
    return str(error) if isinstance(error, RedirectError) else NOT_A_URL
