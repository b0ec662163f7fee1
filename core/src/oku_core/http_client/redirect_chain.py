"""A request and its redirections: which headers, and which body, each request of the chain may have."""

from oku_core.http_client.redirects import (
    Hop,
    RedirectError,
    describe_excess,
    drop_content_headers,
    next_hop,
)


class RedirectChain:
    """The requests that follow a first one as responses redirect it.

    Args:
        hop: the first request.
        headers: its own headers.
        body: its body; empty or None without one.
        most: how many redirections are followed; 0 if the first response is the last.
        has_certificate: whether there is a client certificate.

    Attributes:
        hop: the latest request.
        headers: its headers; none of the user's after the chain has left the first origin.
        body: its body.
    """

    __slots__ = ("_count", "_has_certificate", "_most", "body", "headers", "hop")

    def __init__(
        self,
        hop: Hop,
        headers: list[tuple[str, str]],
        body: object,
        most: int,
        *,
        has_certificate: bool,
    ) -> None:
        self.hop = hop
        self.headers = headers
        self.body = body
        self._most = most
        self._has_certificate = has_certificate
        self._count = 0

    def follow(self, status: int, head: bytes) -> bool:
        """Go on to the request that a response asks for; False if it is the last response.

        Args:
            status: of the response to the latest request.
            head: its status line and headers.

        Raises:
            RedirectError: the redirection cannot be followed, or must not be.
        """
        if not self._most:
            return False
        following = next_hop(self.hop, status, head, has_certificate=self._has_certificate)
        if following is None:
            return False
        if self._count == self._most:
            raise RedirectError(describe_excess(self._most))
        self._count += 1
        self.hop = following
        if not following.keeps_content:
            self.headers, self.body = drop_content_headers(self.headers), None
        if following.is_foreign:
            self.headers = []
        return True
