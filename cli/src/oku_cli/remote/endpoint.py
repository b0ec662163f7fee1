"""How a coordinator is referred to, and where it answers while such a reference is open."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self


class CoordinatorAddress(Protocol):
    """Where a coordinator answers. Its attributes are those of an `Endpoint`."""

    @property
    def url(self) -> str:
        """The URL of its API; `UnreachableError` while it has none."""

    @property
    def token(self) -> str:
        """The token that its API asks for."""

    @property
    def token_note(self) -> str:
        """A note for the user whose token was refused; empty for none."""

    @property
    def find_trouble(self) -> Callable[[], str]:
        """Returns what is wrong on the way to it; an empty text if nothing is known to be."""


class CoordinatorRef(Protocol):
    """A coordinator, wherever it is."""

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name it in a command."""

    def open(self) -> AbstractAsyncContextManager[CoordinatorAddress]:
        """Its address, which holds as long as the context lasts."""


@dataclass(frozen=True)
class Endpoint:
    """A coordinator with a URL that this machine can reach.

    Args:
        url: of its API.
        token: that its API asks for.
        flags: that name it in a command.
        token_note: for the user whose token was refused; empty for none.
        find_trouble: returns what is wrong on the way to it; an empty text if nothing is known to be.
    """

    url: str
    token: str
    flags: Sequence[str] = field(default=(), compare=False)
    token_note: str = ""
    find_trouble: Callable[[], str] = field(default=str, compare=False)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Itself: there is nothing to open."""
        yield self
