"""A delay server that listens on all addresses, asked over the loopback of both families."""

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.requirement import miss
from tests.kit.servers.delay_server import PATIENCE_S, Start

LOOPBACKS = ("127.0.0.1", "::1")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that end with the test."""
    servers = Start(tmp_path)
    yield servers
    servers.end()


def require_ipv6() -> None:
    """Skips where the loopback has no address of IPv6, fails in CI."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError as error:
        miss(f"there is no ::1: {error}")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_both_families_are_answered_at_one_port(start: Start, processes: str) -> None:
    """`--host '*'`, whatever addresses the machine has; and all requests are counted together."""
    require_ipv6()
    server = start("--host", "*", "--processes", processes)
    port = server.endpoint[1]
    for host in LOOPBACKS:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
        connection.request("GET", "/1", headers={"Oku-Run": "a"})
        assert connection.getresponse().read() == b"Hello, World!"
        connection.close()
    connection.request("GET", "/-/served?run=a")
    assert json.load(connection.getresponse())["served"] == len(LOOPBACKS)
    connection.close()


@pytest.mark.parametrize("host", LOOPBACKS)
def test_one_address_is_that_address_alone(start: Start, host: str) -> None:
    """Who names one is not heard at another."""
    require_ipv6()
    port = start("--host", host).endpoint[1]
    (other,) = set(LOOPBACKS) - {host}
    with socket.create_connection((host, port)):
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((other, port))
