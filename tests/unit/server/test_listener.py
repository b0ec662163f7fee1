import errno
import os
import socket

import pytest

from oku_core.errors import UserError
from oku_server import listener


class Bound(socket.socket):
    """A socket that is bound to an address."""

    def __init__(self, *address: str | int) -> None:
        self._address = address

    def getsockname(self) -> tuple[str | int, ...]:
        """As a socket does."""
        return self._address


@pytest.mark.parametrize(
    ("address", "text"), [(("127.0.0.1", 80), "127.0.0.1:80"), (("::1", 80, 0, 0), "[::1]:80")]
)
def test_an_address_is_written_as_in_a_url(address: tuple[str | int, ...], text: str) -> None:
    """IPv6 stands in brackets."""
    assert listener.format_address(Bound(*address)) == text


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EADDRINUSE, "--port: 80 is in use on a"),
        (errno.EACCES, "--port: 80 is not permitted to you"),
        (errno.EADDRNOTAVAIL, "--host: a is not an address of this machine"),
        (errno.EMFILE, "--host: a:80 cannot be listened on: Too many open files"),
    ],
)
def test_what_keeps_a_server_from_listening_is_one_line(number: int, message: str) -> None:
    """The flag, its value and what is wrong with it."""
    assert listener._explain(OSError(number, os.strerror(number)), "a", 80) == message


def test_a_host_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names it."""

    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(UserError, match=r"^--host: 'nowhere' is not a host that can be resolved$"):
        listener.open_sockets("nowhere", 0, 1)
