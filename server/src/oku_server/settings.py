"""The settings of a delay server: one frozen value, complete before the server starts.

The settings are values here. A command line that takes them as text parses them first
(`delay.parse_delay`, `response_body.parse_body`, `fault.parse_rate`).
"""

from dataclasses import dataclass, field
from pathlib import Path

from oku_core.spec.values.delay import Delay, parse_delay
from oku_server.behaviour.fault import FaultRates
from oku_server.behaviour.response_body import DEFAULT_BODY

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080


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
