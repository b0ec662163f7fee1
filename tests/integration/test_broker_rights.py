"""The rights that the chart gives at its Valkey: enough for a run in which much goes wrong, and no more."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.brokers import valkey
from tests.kit.coordinators.coordinator import run_coordinator
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import OKU, wait_until
from tests.kit.servers.delay_server import DelayServer

USERS = Path(__file__).parents[2] / "charts" / "oku" / "files" / "users.acl"


class Site:
    """A Valkey with the chart's users, and one beside them that looks at it."""

    def __init__(self, folder: Path) -> None:
        text = USERS.read_text().replace("COORDINATOR_PASSWORD", "c").replace("WORKERS_PASSWORD", "w")
        (folder / "users.acl").write_text(f"{text}user admin on >a ~* &* +@all\n")
        command = [
            valkey.find_server(), "--port", "0", "--unixsocket", str(folder / "s"), "--dir", str(folder),
            "--save", "", "--aclfile", str(folder / "users.acl"),
        ]  # fmt: skip
        self.socket = folder / "s"
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(self.socket.exists, 10, "the broker listens")
        self.admin = self.connect("admin", "a")

    def connect(self, user: str, password: str) -> Any:
        """A client of one of its users."""
        import redis  # it comes with kombu

        return redis.Redis(unix_socket_path=str(self.socket), username=user, password=password)

    def build_url(self, user: str, password: str) -> str:
        """As Celery takes it."""
        return f"redis+socket://{user}:{password}@{self.socket}"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Ended after the test."""
    site = Site(tmp_path)
    yield site
    site.process.kill()
    site.process.wait()


def start_worker(site: Site, name: str) -> "subprocess.Popen[bytes]":
    """A worker with the rights of workers."""
    command = [*OKU, "worker", "--broker-url", site.build_url("workers", "w"), "--name", name]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def test_a_run_in_which_much_goes_wrong_is_denied_nothing(site: Site, tmp_path: Path) -> None:
    """Workers die and leave, the coordinator is replaced, connections are cut, the run is paused."""
    (tmp_path / "server").mkdir()
    server = DelayServer(tmp_path / "server", "--delay", "20ms")
    url, flags = site.build_url("coordinator", "c"), ("--server-url", server.url, "--worker-timeout", "2s")
    workers = [start_worker(site, "w1"), start_worker(site, "w2")]
    try:
        with run_coordinator(url, tmp_path / "data", *flags) as api:
            run = api.submit(requests=20_000, **{"range-size": 500, "concurrency": 50, "engine": "httptools"})
            wait_until(lambda: api.summary(run)["accounted"] > 0, 30, "something is accounted")
            workers[0].kill()
            api.call("POST", f"/api/runs/{run}/pause")
            api.wait_for_state(run, "paused")
            api.call("POST", f"/api/runs/{run}/resume")
        workers.append(start_worker(site, "w3"))
        with run_coordinator(url, tmp_path / "data", *flags) as api:
            for kind in ("normal", "pubsub"):
                site.admin.client_kill_filter(_type=kind, skipme=True)
            workers[1].terminate()
            summary = api.wait_for_state(run, "completed", 60)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        server.end()
    assert_completed(summary)
    assert site.admin.acl_log() == []


DENIED = [
    ("coordinator", "c", ["BRPOP", "leases.b1", "0.01"]),
    ("coordinator", "c", ["BRPOP", "control.b1", "0.01"]),
    ("coordinator", "c", ["PUBLISH", "/0.celeryev/oku.progress", "x"]),
    ("coordinator", "c", ["HGET", "unacked", "x"]),
    ("workers", "w", ["BRPOP", "checkpoints", "0.01"]),
    ("workers", "w", ["HGET", "unacked_checkpoints", "x"]),
    ("workers", "w", ["PUBLISH", "/0.oku.orders", "x"]),
    ("workers", "w", ["PSUBSCRIBE", "/0.celeryev/oku.progress"]),
    ("workers", "w", ["INFO"]),
    *(
        (user, password, command)
        for user, password in (("coordinator", "c"), ("workers", "w"))
        for command in (
            ["CONFIG", "GET", "*"], ["FLUSHALL"], ["KEYS", "*"], ["SCAN", "0"], ["SCRIPT", "FLUSH"],
            ["SCRIPT", "KILL"], ["EVAL", "return 1", "0"], ["FUNCTION", "LIST"],
            ["MONITOR"], ["CLIENT", "LIST"], ["CLIENT", "KILL", "ID", "1"], ["ACL", "LIST"], ["SHUTDOWN"],
            ["REPLICAOF", "h", "1"], ["SAVE"], ["SELECT", "1"], ["GET", "else"], ["LPUSH", "else", "x"],
            ["PSUBSCRIBE", "*"],
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("user", "password", "command"), DENIED, ids=str)
def test_everything_else_is_denied(site: Site, user: str, password: str, command: list[str]) -> None:
    """Neither user can take what is meant for the other, look around, or change the server."""
    import redis  # it comes with kombu

    with pytest.raises(redis.exceptions.NoPermissionError):
        site.connect(user, password).execute_command(*command)


def test_nobody_comes_in_without_a_password(site: Site) -> None:
    """The default user is disabled."""
    import redis  # it comes with kombu

    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(unix_socket_path=str(site.socket)).ping()
