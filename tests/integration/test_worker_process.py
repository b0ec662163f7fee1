"""A real worker process over the real broker: leases that are right, doubled, stale or none."""

import base64
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.far_broker import run_far_broker
from tests.kit.faults.freezing import freeze
from tests.kit.free_ports import pick_port
from tests.kit.outcomes import make_counts
from tests.kit.runs.local_run import OKU, find_worker, wait_until
from tests.kit.servers.delay_server import Start
from tests.kit.workers import worker_process
from tests.kit.workers.checkpoint_book import LeaseAccount
from tests.kit.workers.health_probe import probe
from tests.kit.workers.lease_desk import RUN, LeaseDesk
from tests.kit.workers.worker_process import Process

from oku_core.accounting.measured_time import Time
from oku_core.broker.celery_app import LEASE_TASK, build_lease_queue
from oku_core.broker.sending import send_to_workers
from oku_core.messaging.lease import Lease
from oku_core.messaging.order import Intervals
from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url
from oku_workers.health.watchdogs import EXIT_STUCK


class Desk(LeaseDesk):
    """The coordinator's end of the queues, with a target for requests."""

    def __init__(self, broker_url: str, url: str) -> None:
        super().__init__(broker_url)
        self.url = url

    def build_spec(self, **changes: Any) -> Spec:
        """Requests to the target."""
        fields: dict[str, Any] = {
            "engine": Engine.HTTPTOOLS, "urls": (Url(f"{self.url}/{{i}}"),), "concurrency": 10,
            "timeout_s": 5,
        }  # fmt: skip
        return Spec(**(fields | changes))

    def deal(self, size: int = 50, worker: str = "w", **changes: Any) -> Lease:
        """Give a lease on the target to a worker."""
        lease = self.build_lease(size, changes.pop("run", RUN), changes.pop("limit", None))
        fields: dict[str, Any] = {"spec": self.build_spec()}
        self.send(lease, worker=worker, **(fields | changes))
        return lease

    def run_lease(self, size: int = 50, worker: str = "w", **changes: Any) -> LeaseAccount:
        """Have a lease carried out; its account."""
        lease = self.deal(size, worker, **changes)
        account = self.receive_final()
        assert account is self.book.accounts[lease.id]
        return account

    def refuse(self, **fields: Any) -> str:
        """The reason for which a worker refuses a lease whose spec says this, without beginning it."""
        account = self.run_lease(spec=self.build_spec(**fields), run=f"run{self._count}")
        assert account.checkpoint.done == 0
        assert account.checkpoint.refusal
        return account.checkpoint.refusal

    def list_connections(self) -> set[str]:
        """Who is connected to the broker, but for the one who asks."""
        with self.app.connection_for_write() as connection:
            client = connection.default_channel.client
            return {each["id"] for each in client.client_list()} - {str(client.client_id())}

    def cut(self, connections: set[str]) -> None:
        """Cut connections of the broker."""
        with self.app.connection_for_write() as connection:
            for each in connections & self.list_connections():
                connection.default_channel.client.client_kill_filter(_id=each)

    def allow_writes(self, *, is_allowed: bool) -> None:
        """Whether the broker takes writes, or refuses each: it is told to wait for a replica."""
        with self.app.connection_for_write() as connection:
            connection.default_channel.client.config_set("min-replicas-to-write", 0 if is_allowed else 1)


@pytest.fixture(scope="module")
def target_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A delay server for all tests."""
    servers = Start(tmp_path_factory.mktemp("servers"))
    yield servers("--delay", "20ms").url
    servers.end()


@pytest.fixture
def desk(target_url: str, tmp_path: Path) -> Iterator[Desk]:
    """A broker, and the coordinator's end of the queues."""
    with run_broker(tmp_path) as broker_url, Desk(broker_url, target_url) as desk:
        yield desk


@pytest.fixture
def worker(desk: Desk, tmp_path: Path) -> Iterator[Process]:
    """A worker that waits for leases."""
    with run_worker(desk, tmp_path) as process:
        yield process


@contextmanager
def run_worker(desk: Desk, folder: Path, *flags: str, name: str = "w", url: str = "") -> Iterator[Process]:
    """Runs a worker of the desk's broker, which logs into a folder; it may have another way there."""
    log = folder / f"{name}.log"
    with worker_process.run_worker(
        url or desk.app.conf.broker_url, "--grace", "5s", *flags, name=name, log=log
    ) as process:
        desk.find_incarnation(name)
        yield process


def test_a_lease_is_executed_and_told_of(desk: Desk, worker: Process) -> None:
    """Its final checkpoint is true, and names the worker that spoke before."""
    account = desk.run_lease()
    batch = desk.book.batches[-1]
    assert (batch.worker, batch.incarnation, batch.run) == ("w", desk.find_incarnation(), RUN)
    assert (batch.taken, batch.checkpoints[-1].is_final) == (50, True)
    assert account.outcomes == make_counts(50)
    assert account.part.statuses == {"200": 50}
    assert account.part.histogram(Time.LATENCY).min_us >= 15_000
    assert account.checkpoint.figures.started_at <= account.checkpoint.figures.ended_at


def test_a_lease_is_told_of_before_it_is_over(desk: Desk, worker: Process) -> None:
    """Checkpoints come in the first second, and each contains the one before it."""
    lease = desk.deal(100_000)
    for _ in range(3):
        desk.receive()
    account = desk.book.accounts[lease.id]
    assert 0 < account.checkpoint.covered < 100_000
    assert not account.checkpoint.is_final
    wait_until(lambda: lease.id in desk.heard["w"].leases, 5, "it is named in progress")
    assert desk.heard["w"].specs == [RUN]
    desk.stop()
    desk.receive_final()
    wait_until(lambda: not desk.heard["w"].leases, 5, "it is forgotten once its end is confirmed")


def test_a_broker_that_takes_no_writes_for_a_while_ends_no_worker(
    desk: Desk, worker: Process, tmp_path: Path
) -> None:
    """A Valkey on a full disk refuses writes; the worker tells of its leases when that is over."""
    lease = desk.deal(400)
    desk.allow_writes(is_allowed=False)
    wait_until(lambda: "NOREPLICAS" in (tmp_path / "w.log").read_text(), 15, "the worker is refused")
    time.sleep(3.0)
    desk.allow_writes(is_allowed=True)
    assert desk.receive_final() is desk.book.accounts[lease.id]
    assert desk.run_lease(10).outcomes[0] == 10
    assert worker.poll() is None


def test_a_worker_whose_connections_are_cut_goes_on(desk: Desk, tmp_path: Path) -> None:
    """It hears and speaks again soon, and nothing of the loss is in its log but the loss."""
    others = desk.list_connections()
    with run_worker(desk, tmp_path):
        first = desk.deal(100_000)
        for _ in range(3):
            before = desk.list_connections() - others
            desk.cut(before)
            wait_until(lambda: bool(desk.list_connections() - others - before), 15, "the worker is back")  # noqa: B023
            lease = desk.build_lease(10)
            batch = desk.build_batch(lease, spec=desk.build_spec())
            wait_until(lambda: is_taken(desk, batch), 15, "a lease is taken")  # noqa: B023
        desk.control(ends={first.id: 0})
        assert all(desk.receive_final() for _ in range(4))
    log = (tmp_path / "w.log").read_text()
    assert "Connection to broker lost" in log
    assert "critical" not in log
    assert "PendingDeprecation" not in log


def is_taken(desk: Desk, batch: Any) -> bool:
    """Send leases, as often as it takes, and whether the worker names them."""
    desk.send(*batch.leases, spec=batch.spec)
    time.sleep(1.1)
    return batch.leases[0].id in desk.heard["w"].leases


def test_what_is_not_a_lease_is_dropped(desk: Desk, worker: Process) -> None:
    """Forged and malformed messages do not hold the worker up."""
    queue = build_lease_queue(desk.find_incarnation())
    for document in ({}, "lease", 7, {"run": "r", "incarnation": "b", "leases": "0"}):
        desk.app.send_task(LEASE_TASK, args=[document], queue=queue)
    desk.app.send_task(LEASE_TASK, args=[], queue=queue)
    desk.app.send_task("oku.unknown", args=[1], queue=queue)
    desk.send_raw(b"{")
    assert desk.run_lease().outcomes[0] == 50
    assert worker.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(desk: Desk, worker: Process, number: signal.Signals) -> None:
    """What is in flight finishes, the end of every lease is told and confirmed, and the exit code is 0."""
    desk.deal(100_000)
    desk.deal(100_000)
    desk.receive()
    time.sleep(0.5)
    worker.send_signal(number)

    accounts = [desk.receive_final(), desk.receive_final()]

    assert worker.wait(10) == 0
    assert all(account.given_back == [] for account in accounts)
    assert 0 < sum(account.checkpoint.covered for account in accounts) < 100_000


def test_a_lease_that_comes_while_a_worker_drains_is_given_back(desk: Desk, worker: Process) -> None:
    """It was on its way; the worker does not leave without a word about it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = Url(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        desk.deal(1000, spec=desk.build_spec(urls=(url,), timeout_s=4))
        desk.receive()
        worker.send_signal(signal.SIGTERM)
        wait_until(lambda: desk.heard["w"].stopping, 3, "the worker says that it leaves")
        late = desk.deal(10, spec=None)
        account = desk.receive_final()
        assert account is desk.book.accounts[late.id]
        assert account.checkpoint.done == 0
        assert desk.receive_final().outcomes == make_counts(timeout=10)
        assert worker.wait(10) == 0


def test_a_worker_drains_when_nobody_confirms(desk: Desk, tmp_path: Path) -> None:
    """It waits for its coordinator for a while, and leaves well when the broker has its last word.

    Over a network it takes a second until Celery lets go of the broker.
    """
    socket_file = Path(urlsplit(desk.app.conf.broker_url).path)
    with (
        run_far_broker(socket_file, 0.02) as url,
        run_worker(desk, tmp_path, "--grace", "1s", url=url) as worker,
    ):
        desk.is_confirming = False
        desk.deal(100_000)
        desk.receive()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
        assert desk.receive_final().checkpoint.is_final
    assert "nobody has confirmed" in (tmp_path / "w.log").read_text()


@pytest.mark.parametrize("is_answered", [True, False], ids=["answered", "unanswered"])
def test_an_idle_worker_ends_at_once_on_a_signal(desk: Desk, worker: Process, is_answered: bool) -> None:  # noqa: FBT001
    """A worker without a lease waits for the word that none is on its way, and not long for that."""
    desk.run_lease(1)
    wait_until(lambda: not desk.heard["w"].leases, 5, "it is forgotten")
    begun = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    if is_answered:
        desk.let_go()

    assert worker.wait(10) == 0
    assert time.monotonic() - begun < (3 if is_answered else 10)


_SLOW_WORKER = """
import logging, os, sys, time
from kombu.transport.redis import MultiChannelPoller
connect = MultiChannelPoller._register_BRPOP

def connect_slowly(self, channel):
    if not hasattr(channel, "is_connected"):
        time.sleep(4)
        channel.is_connected = True
    return connect(self, channel)

MultiChannelPoller._register_BRPOP = connect_slowly
from oku_workers.process import serve
from oku_workers.settings import WorkerSettings
logging.basicConfig()
key = os.environb[b"OKU_MESSAGE_KEY"]
sys.exit(serve(WorkerSettings(broker_url=sys.argv[1], message_key=key, name="w", grace_s=5)))
"""
"""A real worker that connects to its queues as slowly as where a name resolves slowly."""


def test_a_worker_that_leaves_as_soon_as_it_has_spoken_gives_back_what_it_was_sent(desk: Desk) -> None:
    """It does not speak before it has connected to its queues."""
    process = subprocess.Popen([sys.executable, "-c", _SLOW_WORKER, str(desk.app.conf.broker_url)])
    try:
        lease = desk.deal(10)
        process.send_signal(signal.SIGTERM)
        account = desk.receive_final()
        assert account is desk.book.accounts[lease.id]
        desk.let_go()
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.wait()


def test_a_lease_that_is_long_on_its_way_to_a_worker_that_leaves_is_given_back(
    desk: Desk, worker: Process
) -> None:
    """An idle worker waits for what its coordinator, on a busy machine, has sent before it knew."""
    worker.send_signal(signal.SIGTERM)
    wait_until(lambda: desk.heard["w"].stopping, 3, "the worker says that it leaves")
    time.sleep(1.0)
    late = desk.deal(10)
    account = desk.receive_final()
    assert account is desk.book.accounts[late.id]
    assert account.checkpoint.done == 0
    desk.let_go()
    assert worker.wait(2) == 0


def test_a_file_that_never_ends_holds_no_worker_up(desk: Desk, tmp_path: Path) -> None:
    """A lease with a pipe to which nobody writes is refused, the next is executed, and SIGTERM drains."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with run_worker(desk, tmp_path, "--files-dir", str(tmp_path)) as worker:
        assert desk.refuse(cacert=str(pipe)).endswith("it is not a regular file")
        assert desk.run_lease().outcomes[0] == 50
        assert desk.refuse(cert=str(pipe)).endswith("it is not a regular file")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0


def test_a_worker_reveals_nothing_about_files_that_it_may_not_read(desk: Desk, tmp_path: Path) -> None:
    """Whether a file exists, is missing or hangs, the answer is the same unless it is below `--files-dir`."""
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    (other / "ca.pem").write_text("there")
    os.mkfifo(other / "pipe")
    (allowed / "link").symlink_to(other / "ca.pem")
    outside = [*(other / name for name in ("ca.pem", "missing", "pipe")), "/proc/self/fd/2", allowed / "link"]
    with run_worker(desk, tmp_path, "--files-dir", str(allowed)):
        answers = {desk.refuse(cacert=str(path)).replace(str(path), "PATH") for path in outside}
        assert desk.refuse(cacert=str(allowed / "missing")).endswith("No such file or directory")
    assert len(answers) == 1, answers


_STUCK_WORKER = """
import logging, os, sys, threading, time
import uvloop
make_loop = uvloop.new_event_loop

def make_and_block():
    loop = make_loop()
    threading.Timer(float(sys.argv[2]), loop.call_soon_threadsafe, (time.sleep, 600)).start()
    return loop

uvloop.new_event_loop = make_and_block
from oku_workers.process import serve
from oku_workers.settings import WorkerSettings
logging.basicConfig()
key = os.environb[b"OKU_MESSAGE_KEY"]
sys.exit(serve(WorkerSettings(broker_url=sys.argv[1], message_key=key, name="w", grace_s=1, loop_limit_s=3)))
"""
"""A real worker, and something that blocks its event loop after some time."""


@pytest.mark.parametrize("leaves", [False, True], ids=["idle", "told to leave"])
def test_a_worker_whose_event_loop_is_stuck_ends(desk: Desk, tmp_path: Path, leaves: bool) -> None:  # noqa: FBT001
    """It ends even without a lease and when it was told to leave: whoever started it starts another one."""
    command = [sys.executable, "-c", _STUCK_WORKER, str(desk.app.conf.broker_url), "2"]
    with (tmp_path / "w.log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        if leaves:
            desk.run_lease(1)
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == EXIT_STUCK
    finally:
        process.kill()
        process.wait()
    assert "the event loop has not answered for 3 s, it is at" in (tmp_path / "w.log").read_text()


def test_a_liveness_probe_is_answered_while_the_event_loop_is(desk: Desk, tmp_path: Path) -> None:
    """A worker that does not run at all does not answer, either."""
    port = pick_port()
    with run_worker(desk, tmp_path, "--health-port", str(port)) as process:
        assert [probe(port) for _ in range(3)] == [200] * 3
        worker = find_worker(process.pid)
        freeze(worker)
        with pytest.raises(TimeoutError):
            probe(port, timeout_s=0.5)
        os.kill(worker, signal.SIGCONT)
        assert probe(port) == 200


def test_a_worker_is_ready_once_it_has_heard_its_coordinator(desk: Desk, tmp_path: Path) -> None:
    """It lives before that, and stays ready when it hears nothing any more, the broker included."""
    port, others = pick_port(), desk.list_connections()
    with run_worker(desk, tmp_path, "--health-port", str(port)):
        desk.run_lease(1)
        assert (probe(port), probe(port, "/readyz")) == (200, 503)
        assert "connected to the coordinator" not in (tmp_path / "w.log").read_text()
        send_to_workers(desk.app, [Intervals(number=1, heartbeat_s=1.0, checkpoint_s=3.0)])
        wait_until(lambda: probe(port, "/readyz") == 200, 10, "the worker is ready")
        desk.cut(desk.list_connections() - others)
        assert {probe(port, "/readyz") for _ in range(100)} == {200}
    assert (tmp_path / "w.log").read_text().count("connected to the coordinator through") == 1


def test_a_port_for_probes_that_is_taken_is_named(desk: Desk, tmp_path: Path) -> None:
    """The worker does not start without it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*OKU, "worker", "--broker-url", desk.app.conf.broker_url, "--health-port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert f"--health-port: {port} is in use on 127.0.0.1" in ended.stderr


@pytest.mark.parametrize("engine", HTTP1_ENGINES)
def test_a_log_contains_no_secret_of_a_request(desk: Desk, tmp_path: Path, engine: Engine) -> None:
    """Errors of libraries name the URL that was requested, with all that is in it."""
    with ThreadingTCPServer(("127.0.0.1", 0), _Babbler) as target, run_worker(desk, tmp_path):
        threading.Thread(target=target.serve_forever, daemon=True).start()
        url = f"http://me:hunter2@127.0.0.1:{target.server_address[1]}/{{i}}?token=hunter2"
        spec = Spec(
            urls=(Url(url),),
            headers=(Header("X-Key: hunter2"),),
            body="hunter2",
            method="POST",
            engine=engine,
        )
        assert desk.run_lease(5, spec=spec).outcomes == make_counts(protocol_error=5)
        target.shutdown()
    log = (tmp_path / "w.log").read_text()
    assert "first protocol_error" in log
    assert "hunter2" not in log


@pytest.mark.parametrize("engine", HTTP1_ENGINES)
def test_secrets_are_put_in_where_requests_are_sent(
    desk: Desk, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only allowed names are read, once for each run; neither a checkpoint nor a log has the values."""
    monkeypatch.setenv("TOKEN", "hunter2")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "pass").write_text("p@ss\n")
    seen: list[bytes] = []

    class Listener(StreamRequestHandler):
        def handle(self) -> None:
            seen.append(self.request.recv(65_536))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    flags = ("--allow-env", "TOKEN", "--secrets-dir", str(secrets))
    with ThreadingTCPServer(("127.0.0.1", 0), Listener) as target, run_worker(desk, tmp_path, *flags):
        threading.Thread(target=target.serve_forever, daemon=True).start()
        url = f"http://me:{{file:pass}}@127.0.0.1:{target.server_address[1]}/{{i}}?t={{env:TOKEN}}&{{file:pass}}"
        spec = Spec(
            urls=(Url(url),),
            headers=(Header("X-Key: k-{env:TOKEN}"),),
            body="{file:pass}!",
            method="POST",
            engine=engine,
        )

        def send(run: str) -> bytes:
            account = desk.run_lease(1, spec=spec, run=run)
            assert account.outcomes[0] == 1, (tmp_path / "w.log").read_text()
            assert "hunter2" not in str(account)
            return seen.pop()

        first = send("run-1")
        assert b"?t=hunter2&p%40ss HTTP/1.1\r\n" in first
        assert b"X-Key: k-hunter2\r\n" in first
        assert b"Authorization: Basic " + base64.b64encode(b"me:p@ss") in first
        assert first.endswith(b"\r\n\r\np@ss!")
        (secrets / "pass").write_text("changed")
        assert send("run-1").endswith(b"p@ss!")
        assert send("run-2").endswith(b"changed!")
        target.shutdown()
    assert "hunter2" not in (tmp_path / "w.log").read_text()


def test_a_missing_secret_is_refused_by_name(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value goes where it is not allowed: neither that of the broker nor that of the user's shell."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    with run_worker(desk, tmp_path, "--allow-env", "MISSING"):
        for name in ("AWS_SECRET_ACCESS_KEY", "OKU_BROKER_URL", "PATH"):
            reason = desk.refuse(headers=(Header(f"A: {{env:{name}}}"),))
            assert reason == f"{{env:{name}}} is not allowed here: --allow-env {name} allows it"
        assert desk.refuse(body="{env:MISSING}") == "{env:MISSING}: this variable is not set here"
        assert desk.refuse(body="{file:x}").startswith("{file:x} is not allowed here")
        assert desk.run_lease().outcomes[0] == 50


@pytest.mark.parametrize("engine", HTTP1_ENGINES)
@pytest.mark.parametrize("requests", [10, 10**15])
def test_a_window_that_is_never_filled_takes_no_memory(
    desk: Desk, tmp_path: Path, engine: Engine, requests: int
) -> None:
    """A concurrency of a million, of a run or of a lease with ten requests, costs what ten cost."""
    with run_worker(desk, tmp_path):
        spec = Spec(urls=(Url(f"{desk.url}/{{i}}"),), concurrency=1_000_000, requests=requests, engine=engine)
        account = desk.run_lease(10, spec=spec)
    assert account.outcomes[0] == 10
    assert account.checkpoint.figures.peak_rss_mb < 150


class _Babbler(StreamRequestHandler):
    """Answers what is no HTTP."""

    def handle(self) -> None:
        """One request."""
        self.request.recv(65_536)
        self.wfile.write(b"HTTP/1.1 what?\r\n\r\n")
