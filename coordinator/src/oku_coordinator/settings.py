"""What a coordinator is told when it starts."""

from dataclasses import dataclass, field
from pathlib import Path

from oku_coordinator.loki.endpoint import LokiTarget
from oku_core.spec.files import NOWHERE, SpecFiles

MOST_QUEUED = 500
START_WITHIN_S = 10.0
"""For workers that are processes of this machine, or run already."""
KUBE_START_WITHIN_S = 60.0
"""For pods, whose images may have to be pulled first; delay servers get as long."""

KEEP_KEYS_S = 30 * 86_400.0


@dataclass(frozen=True)
class RetentionRule:
    """How long runs that are over are kept; None is for ever.

    Args:
        keep_runs: how many of them, the newest.
        keep_for_s: how long after their end.
        keep_keys_s: how long the keys with which they were submitted are kept after their deletion.
    """

    keep_runs: int | None = None
    keep_for_s: float | None = None
    keep_keys_s: float = KEEP_KEYS_S


@dataclass(frozen=True, kw_only=True)
class FileLimits:
    """How much of the disk the files of runs may take.

    Args:
        most_file_bytes: one of them.
        most_bytes: all of them.
        most_per_run: how many a run may use.
        unused_s: how long one stays that was uploaded and is used by no run, or that nothing more comes of.
    """

    most_file_bytes: int = 4_000_000_000
    most_bytes: int = 20_000_000_000
    most_per_run: int = 100
    unused_s: float = 86_400.0


@dataclass(frozen=True, kw_only=True)
class KubeSettings:
    """What a coordinator in a Kubernetes cluster may scale.

    Args:
        namespace: of everything that follows.
        workers: name of the Deployment of workers.
        servers: name of the Deployment of delay servers; empty when there is none.
        default_workers: how many workers a run gets that does not say.
        max_workers: how many a run may get.
        min_servers: how many delay servers there are at rest, and at least.
        max_servers: how many a run may get.
        idle_s: after this long without a run, workers go back to 0 and delay servers to `min_servers`.
    """

    namespace: str
    workers: str
    servers: str = ""
    default_workers: int = 2
    max_workers: int = 20
    min_servers: int = 0
    max_servers: int = 10
    idle_s: float = 60.0


@dataclass(frozen=True, kw_only=True)
class CoordinatorSettings:
    """Settings of one coordinator.

    Args:
        broker_url: of the broker, as Celery takes it.
        message_key: signs what goes through it.
        data_dir: folder of the ledger.
        trusts_data_dir: whether that folder is taken as it is, whoever owns it and may write it.
        token: what every API call but the probes has to bear.
        closes_metrics: whether `/metrics` needs the token, too.
        host: address that the API listens on; `*` is all addresses, of IPv4 and of IPv6.
        port: port of the API; 0 takes a free one.
        listen_fd: number of an inherited socket that listens already, instead of host and port.
        clock_host: what workers on other machines call this one, to ask for its clock by UDP; found out
            unless given, and empty if the API listens for this machine alone.
        clock_port: the port that they ask; that of the API unless given.
        server_urls: where Oku's own delay servers are; `{i}` is appended for the index.
        worker_timeout_s: a worker that is silent for longer is dead.
        start_within_s: how long a run that has its turn waits for the workers that it asks for, unless its
            spec says so.
        expected_workers: the names of the workers that a run waits for, unless its spec says how many.
        most_queued: how many runs may wait, the active one included.
        allows_user_code: whether runs may bring code of their own, which workers carry out.
        loki: where lines go; None keeps none.
        most_outbox_bytes: what the lines that wait for Loki may take in the ledger.
        kube: what it may scale; None outside a cluster.
        retention: how long runs that are over are kept.
        files: says which files specs may name.
        files_port: port at which workers fetch the files of runs, on the same address as the API; 0 takes a
            free one.
        files_listen_fd: number of an inherited socket that listens already, instead of that port.
        files_host: what workers call this machine to fetch them; found out unless given.
        files_address_port: the port that they use; that of `files_port` unless given.
        file_limits: how much of the disk these files may take.
        ready_file: file to write the API's `host:port` into once it listens.
    """

    broker_url: str
    message_key: bytes = field(repr=False)
    data_dir: Path
    token: str
    closes_metrics: bool = False
    trusts_data_dir: bool = False
    host: str = "127.0.0.1"
    port: int = 8700
    listen_fd: int | None = None
    clock_host: str | None = None
    clock_port: int | None = None
    server_urls: tuple[str, ...] = ()
    worker_timeout_s: float = 10.0
    start_within_s: float = START_WITHIN_S
    expected_workers: tuple[str, ...] = ()
    most_queued: int = MOST_QUEUED
    allows_user_code: bool = False
    loki: LokiTarget | None = None
    most_outbox_bytes: int = 256_000_000
    kube: KubeSettings | None = None
    retention: RetentionRule = RetentionRule()
    files: SpecFiles = NOWHERE
    files_port: int = 0
    files_listen_fd: int | None = None
    files_host: str | None = None
    files_address_port: int | None = None
    file_limits: FileLimits = FileLimits()
    ready_file: Path | None = None

    @property
    def reports_path(self) -> Path:
        """Where the local stack leaves the pages of its runs."""
        return self.data_dir / "reports"

    @property
    def clock_path(self) -> Path:
        """The file in which a coordinator leaves its clock for the next one."""
        return self.data_dir / "clock.json"

    @property
    def files_path(self) -> Path:
        """The folder of the files of runs."""
        return self.data_dir / "files"

    @property
    def ledger_path(self) -> Path:
        """The file of the ledger."""
        return self.data_dir / "ledger.sqlite3"
