"""The error of a request of a scenario that has failed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oku.response import Response


class RequestError(Exception):
    """A request has got no complete answer, or one without what was asked of it.

    A scenario that does not catch it ends as `failed_check`, with this as its reason.

    Attributes:
        name: what the request is counted under.
        reason: why it failed, in one line.
        response: what came; None without a complete answer.
    """

    def __init__(self, name: str, reason: str, response: "Response | None" = None) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason
        self.response = response
