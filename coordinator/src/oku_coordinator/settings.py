"""Settings of a coordinator."""

from dataclasses import dataclass, field
from pathlib import Path

from oku_coordinator.loki.endpoint import LokiTarget
from oku_core.spec.files import NOWHERE, SpecFiles

MOST_QUEUED = 500
START_WITHIN_S = 10.0
"""For workers that are processes of this machine, or are already running."""
KUBE_START_WITHIN_S = 60.0
"""For pods, whose images may have to be pulled first; delay servers get the same time."""

KEEP_KEYS_S = 30 * 86_400.0


@dataclass(frozen=True)
class RetentionRule:
    """How long finished runs are kept; None is forever.

    Args:
        keep_runs: how many of them, the newest.
        keep_for_s: how long after their end.
        keep_keys_s: how long their idempotency keys are kept after their deletion.
    """

    keep_runs: int | None = None
    keep_for_s: float | None = None
    keep_keys_s: float = KEEP_KEYS_S


@dataclass(frozen=True, kw_only=True)
class FileLimits:
    """Limits on the disk space of the files of runs.

    Args:
        most_file_bytes: the size of one file.
        most_bytes: the size of all files.
        most_per_run: the number of files of a run.
        unused_s: how long an incomplete upload, or a file that no run uses, is kept.
    """

    most_file_bytes: int = 4_000_000_000
    most_bytes: int = 20_000_000_000
    most_per_run: int = 100
    unused_s: float = 86_400.0


@dataclass(frozen=True, kw_only=True)
class KubeSettings:
    """What a coordinator in a Kubernetes cluster may scale.

    Args:
        namespace: the namespace of the Deployments.
        workers: name of the Deployment of workers.
        servers: name of the Deployment of delay servers; empty when there is none.
        default_workers: how many workers a run gets by default.
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
        broker_url: the URL of the broker, in Celery's form, or of a Unix socket without a broker.
        message_key: signs all messages.
        broker_listen_fd: number of an inherited Unix socket that already listens at that URL.
        data_dir: the folder of the ledger.
        trusts_data_dir: whether to skip the check of that folder's owner and permissions.
        token: the bearer token of every API call except the probes.
        closes_metrics: whether `/metrics` also requires the token.
        host: address that the API listens on; `*` is all addresses, of IPv4 and of IPv6.
        port: port of the API; 0 takes a free one.
        listen_fd: number of an inherited listening socket, instead of host and port.
        clock_host: the host name at which workers on other machines query the clock by UDP; detected by
            default, and empty if the API is only for this machine.
        clock_port: the UDP port of the clock; the port of the API by default.
        server_urls: the addresses of Oku's own delay servers; `{i}` is appended for the index.
        worker_timeout_s: a worker that is silent for longer counts as dead.
        start_within_s: how long a run that has its turn waits for its workers, unless its spec sets a limit.
        expected_workers: the names of the workers that a run waits for, unless its spec sets a number.
        most_queued: how many runs may wait, the active one included.
        allows_user_code: whether runs may contain user code, which workers execute.
        loki: where lines are pushed; None disables them.
        most_outbox_bytes: the most bytes of lines for Loki in the ledger.
        kube: the Deployments that it may scale; None outside a cluster.
        retention: how long finished runs are kept.
        files: the files that specs may name.
        files_port: port at which workers fetch the files of runs, on the same address as the API; 0 takes a
            free one.
        files_listen_fd: number of an inherited listening socket, instead of that port.
        files_host: the host name at which workers fetch them; detected by default.
        files_address_port: the port that they use; `files_port` by default.
        file_limits: limits on the disk space of these files.
        ready_file: file to write the API's `host:port` into once it listens.
    """

    broker_url: str
    message_key: bytes = field(repr=False)
    data_dir: Path
    token: str
    broker_listen_fd: int | None = None
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
        """The folder in which the local stack stores the reports of its runs."""
        return self.data_dir / "reports"

    @property
    def clock_path(self) -> Path:
        """The file that carries the clock over to the next coordinator."""
        return self.data_dir / "clock.json"

    @property
    def files_path(self) -> Path:
        """The folder of the files of runs."""
        return self.data_dir / "files"

    @property
    def ledger_path(self) -> Path:
        """The file of the ledger."""
        return self.data_dir / "ledger.sqlite3"
