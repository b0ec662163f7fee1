"""How the time of requests of one part of a lease is split: of new connections, and of split answers."""

from oku_core.accounting.histogram import HIGHEST_US
from oku_workers.executions.distribution import Distribution


class TimingDistributions:
    """Counted as connections are made and answers end, for `oku_core.accounting.request_timing`.

    Attributes:
        connect: how long TCP took.
        tls: how long the TLS handshake took.
        split_latency: of answers in several pieces, from sending to the last byte.
        split_first_byte: of these, from sending to the first byte.
        transfer: of these, from the first to the last byte.
    """

    __slots__ = ("connect", "split_first_byte", "split_latency", "tls", "transfer")

    def __init__(self) -> None:
        self.connect, self.tls = Distribution(), Distribution()
        self.split_latency, self.split_first_byte, self.transfer = (Distribution() for _ in range(3))

    def note_connection(self, connect_us: int, tls_us: int | None) -> None:
        """A connection was made; TLS took no time if it was not spoken."""
        self.connect.record(connect_us)
        if tls_us is not None:
            self.tls.record(tls_us)

    def note_split(self, latency_us: int, first_byte_us: int) -> None:
        """An answer came in several pieces; its times add up exactly, also those beyond the range."""
        latency_us = min(latency_us, HIGHEST_US)
        first_byte_us = min(first_byte_us, latency_us)
        self.split_latency.record(latency_us)
        self.split_first_byte.record(first_byte_us)
        self.transfer.record(latency_us - first_byte_us)
