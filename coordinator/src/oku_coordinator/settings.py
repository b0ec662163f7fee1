"""What a coordinator is told when it starts."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class CoordinatorSettings:
    """Settings of one coordinator.

    Args:
        broker_url: of the broker, as Celery takes it.
        data_dir: folder of the ledger.
        token: what every API call but the probes has to bear.
        host: address that the API listens on.
        port: port of the API; 0 takes a free one.
        server_urls: where Oku's own delay servers are; `{i}` is appended for the index.
        term_s: a worker must be heard within a term, and is dead after two without.
        ready_file: file to write the API's `host:port` into once it listens.
    """

    broker_url: str
    data_dir: Path
    token: str
    host: str = "127.0.0.1"
    port: int = 8700
    server_urls: tuple[str, ...] = ()
    term_s: float = 5.0
    ready_file: Path | None = None

    @property
    def ledger_path(self) -> Path:
        """The file of the ledger."""
        return self.data_dir / "ledger.sqlite3"
