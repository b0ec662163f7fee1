"""The settings of a delay server: one frozen value, complete before the server starts.

The settings are values here. A command line that takes them as text parses them first (`delay.parse_delay`,
`fault.parse_fraction`, `parse_body_setting`). The text of a body:

| text | body |
| --- | --- |
| `@logo.png` | the content of the file `logo.png`, which is read once at the start |
| `512B`, `4kB`, `4KiB`, `1MB` | that many bytes: a number and a unit that ends in `B`, nothing else |
| anything else | that text in UTF-8, including `42`, `4k` and the empty text |
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from oku_core.spec.values.delay import Delay, parse_delay
from oku_core.spec.values.quantity import parse_size
from oku_server.behaviour.fault import FaultRates

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
DEFAULT_BODY = b"Hello, World!"
MAX_BODY_BYTES = 2**30
"""The longest body that is allowed, since the body is held in memory."""

_SIZE = re.compile(r"[0-9][0-9_]*(\.[0-9]+)?([kmg]i?)?b", re.IGNORECASE)
_FILLING = b"x"


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The settings of a delay server.

    Args:
        host: the address or name to listen on; `*` means all addresses of IPv4 and IPv6.
        port: the port to listen on; 0 lets the system choose a free one.
        listen_fds: the descriptors of inherited sockets that are already listening, one for each process;
            they replace host and port.
        processes: how many processes share the port.
        delay: the distribution of the delays.
        seed: decides which delay and which fault each index gets.
        body: the body of every answer with status 200.
        faults: how often the server misbehaves.
        counts_dir: the directory that keeps the counts of served requests; None keeps them in memory.
        trusts_counts_dir: whether to accept that directory no matter who owns it or may write to it.
        ready_file: the file that gets `host:port` as soon as the server accepts connections.

    Raises:
        ValueError: responses are to be truncated, but the body is empty.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    listen_fds: tuple[int, ...] = ()
    processes: int = 1
    delay: Delay = field(default_factory=lambda: parse_delay("0s"))
    seed: int = 0
    body: bytes = DEFAULT_BODY
    faults: FaultRates = field(default_factory=FaultRates)
    counts_dir: Path | None = None
    trusts_counts_dir: bool = False
    ready_file: Path | None = None

    def __post_init__(self) -> None:
        """Check the rules that involve several settings."""
        if self.faults.truncate and not self.body:
            raise ValueError("an empty body cannot be truncated")


def parse_body_setting(text: str) -> bytes:
    """The body that `text` stands for, by the table above.

    Raises:
        ValueError: the file cannot be read, or the body is longer than 1 GiB.
    """
    if text.startswith("@"):
        return _read(Path(text[1:]))
    if not _SIZE.fullmatch(text):
        return text.encode()
    size = parse_size(text)
    _check_size(text, size)
    return _FILLING * size


def _read(path: Path) -> bytes:
    try:
        _check_size(str(path), path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def _check_size(text: str, size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise ValueError(f"{text} is not at most 1GiB")
