import errno
import os
import socket

import pytest

from oku_core.errors import UserError
from oku_core.process import listener


class Bound(socket.socket):
    """A socket that is bound to an address."""

    def __init__(self, *address: str | int) -> None:
        self._address = address

    def getsockname(self) -> tuple[str | int, ...]:
        """Return the address as a real socket does."""
        return self._address


def test_addresses_and_errors_are_one_line() -> None:
    """An IPv6 address has brackets."""
    for address, text in [(("127.0.0.1", 80), "127.0.0.1:80"), (("::1", 80, 0, 0), "[::1]:80")]:
        assert listener.format_address(Bound(*address)) == text
    for number, message in [
        (errno.EADDRINUSE, "--port: 80 is in use on a"),
        (errno.EACCES, "--port: 80 needs privileges that you do not have"),
        (errno.EADDRNOTAVAIL, "--host: a is not an address of this machine"),
        (errno.EMFILE, "--host: a:80 cannot be listened on: Too many open files"),
    ]:
        # The error of a server that cannot listen is one line.
        assert listener.explain_failure(OSError(number, os.strerror(number)), "a", 80) == message


@pytest.mark.parametrize("count", [1, 2])
def test_a_server_listens_on_a_machine_without_ipv6(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """There, `*` means all IPv4 addresses."""
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    sockets = listener.open_sockets("*", 0, count)
    try:
        assert {each.family for each in sockets} == {socket.AF_INET}
        port = sockets[0].getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as connection:
            assert connection.getpeername()[1] == port
    finally:
        for each in sockets:
            each.close()


def test_a_host_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the host."""

    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(UserError, match=r"^--host: 'nowhere' is not a host that can be resolved$"):
        listener.open_sockets("nowhere", 0, 1)


def test_sockets_that_listen_already_are_taken_over() -> None:
    """They keep their number, and child processes do not inherit them by accident."""
    [listening] = listener.open_sockets("127.0.0.1", 0, 1)
    listening.set_inheritable(True)
    [adopted] = listener.adopt_sockets([listening.fileno()])
    assert adopted.getsockname() == listening.getsockname()
    assert not adopted.get_inheritable()
    listening.detach()
    adopted.close()
    # Only listening sockets are taken over.
    with socket.socket() as idle, pytest.raises(UserError, match="is not a listening socket"):
        listener.adopt_sockets([os.dup(idle.fileno())])
    reading, writing = os.pipe()
    for number in (reading, 99_999, 2**70):
        with pytest.raises(UserError, match=f"^--listen-fd: {number} is not an open socket$"):
            listener.adopt_sockets([number])
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("has_ipv6", [True, False])
def test_datagrams_are_received_on_all_addresses(monkeypatch: pytest.MonkeyPatch, *, has_ipv6: bool) -> None:
    """From IPv4, too, where there is IPv6."""
    if not has_ipv6:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listener.open_datagram_socket("*", 0) as opened, socket.socket(type=socket.SOCK_DGRAM) as asking:
        opened.settimeout(5)
        asking.sendto(b"what?", ("127.0.0.1", opened.getsockname()[1]))
        assert opened.recv(10) == b"what?"


def test_a_port_that_is_taken_is_in_use() -> None:
    """A server that asks for all addresses is refused."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"^--port: {port} is in use on \*$"):
            listener.open_sockets("*", port, 1)
    # A port that another one receives datagrams at is in use. It is told as for any server.
    with listener.open_datagram_socket("127.0.0.1", 0) as opened:
        port = opened.getsockname()[1]
        with pytest.raises(UserError, match=f"--port: {port} is in use on 127.0.0.1"):
            listener.open_datagram_socket("127.0.0.1", port)
