"""Defines how to refer to a coordinator, where it answers meanwhile, and the token of its API."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self

from oku_core.errors import UserError
from oku_core.messaging.credentials import HOW_TO_MAKE, find_weakness

GIVEN = "--token (OKU_TOKEN)"
"""Names the source of a token that the user gave."""


def read_token(text: str, source: str = GIVEN) -> str:
    """Return the token without surrounding blanks and line breaks.

    Raises:
        UserError: nothing is left of it, or no HTTP header can carry it. The message names `source`, and
            does not show the token.
    """
    token = text.strip()
    if not token:
        raise UserError(f"{source}: is empty")
    if not all("!" <= character <= "~" for character in token):
        raise UserError(f"{source}: has other than printable ASCII characters without spaces")
    return token


def read_own_token(text: str) -> str:
    """Return the token that a coordinator will require of its callers.

    A client sends any token that its coordinator has, so only the coordinator judges it.

    Raises:
        UserError: as `read_token`, or it is easy to guess.
    """
    token = read_token(text)
    if weakness := find_weakness(token.encode(), "characters"):
        raise UserError(f"{GIVEN}: {weakness}; make one: export OKU_TOKEN={HOW_TO_MAKE}")
    return token


class UnreachableError(Exception):
    """Is raised when the coordinator does not answer at present."""


class CoordinatorAddress(Protocol):
    """Finds the address of a coordinator."""

    @property
    def url(self) -> str:
        """The URL of its API; raises `UnreachableError` while there is none."""

    @property
    def token(self) -> str:
        """The token that its API requires."""

    @property
    def token_note(self) -> str:
        """A note for the user whose token was refused; empty for none."""

    def find_trouble(self) -> str:
        """Return the known fault of the way to it; empty if there is none."""


class CoordinatorRef(Protocol):
    """Refers to a coordinator, wherever it is."""

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name it in a command."""

    def open(self) -> AbstractAsyncContextManager[CoordinatorAddress]:
        """Open the way to it; the address is valid as long as the context lasts."""


@dataclass(frozen=True)
class Endpoint:
    """Refers to a coordinator with a URL that this machine can reach; see `CoordinatorAddress`."""

    url: str
    token: str
    flags: Sequence[str] = field(default=(), compare=False)
    token_note: str = ""

    def find_trouble(self) -> str:
        """Nothing is known of the way."""
        return ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Yield itself: there is nothing to open."""
        yield self
