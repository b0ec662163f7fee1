"""A worker beside those of a local stack, whose data folder has its socket and its key."""

from tests.kit.runs.local_run import OKU, LocalRun

from oku_core.broker.socket_url import build_socket_url


def build_guest(run: LocalRun, name: str) -> list[str]:
    """The command of one."""
    key = ("--message-key-file", str(run.data_dir / "message.key"))
    url = build_socket_url(run.data_dir / "workers.sock")
    return [*OKU, "worker", "--broker-url", url, "--name", name, *key]
