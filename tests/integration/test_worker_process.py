"""A real worker process over the real broker: leases that are right, doubled, stale or none."""

import base64
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.runs.local_run import OKU, wait_until
from tests.kit.workers import worker_process
from tests.kit.workers.worker_process import Process

from oku_core.messaging.celery_app import LEASE_TASK, LEASES_QUEUE, REPORTS_QUEUE, App, build_app
from oku_core.messaging.codec import decode_message
from oku_core.messaging.lease import Claim, Lease, Message, Report, find_fault
from oku_core.messaging.order import Stop
from oku_core.messaging.sending import send_lease, send_order
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.header import Header
from oku_core.spec.values.url import Url
from oku_workers.health import EXIT_STUCK


class Desk:
    """The coordinator's end of the queues, which the test controls."""

    def __init__(self, app: App, url: str) -> None:
        self.app = app
        self.url = url
        self._connection = app.connection_for_read()
        self._reports = self._connection.SimpleQueue(REPORTS_QUEUE)
        self._count = 0

    def refuse(self, **fields: Any) -> str:
        """The reason for which a worker refuses a lease whose spec says this, without beginning it."""
        lease = self.build_lease(spec=Spec(urls=(Url(f"{self.url}/{{i}}"),), **fields))
        send_lease(self.app, lease)
        report = self.receive_report()
        assert (report.lease, report.done) == (lease.id, lease.start)
        assert report.refusal
        return report.refusal

    def build_lease(self, size: int = 50, path: str = "{i}", **changes: Any) -> Lease:
        """A new lease on the target."""
        self._count += 1
        fields: dict[str, Any] = {
            "id": f"run.{self._count}.abcd", "run": "run", "start": 1000 * self._count,
            "stop": 1000 * self._count + size, "start_by": time.time() + 60,
            "spec": Spec(urls=(Url(f"{self.url}/{path}"),), concurrency=10, timeout_s=5),
        }  # fmt: skip
        return Lease(**(fields | changes))

    def receive(self, timeout_s: float = 15) -> Message:
        """The next claim or report."""
        message = self._reports.get(timeout=timeout_s)
        message.ack()
        return decode_message(self.app.signer, message.body)

    def receive_report(self, timeout_s: float = 15) -> Report:
        """The next report; what comes before it must be claims."""
        while isinstance(message := self.receive(timeout_s), Claim):
            pass
        return message

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

    def is_empty(self, name: str) -> bool:
        """Whether no message is in a queue; on Redis an empty queue is none."""
        with (
            self.app.connection_for_read() as connection,
            pytest.raises(connection.channel_errors, match="NOT_FOUND"),
        ):
            connection.default_channel.queue_declare(name, passive=True)
        return True

    def close(self) -> None:
        """Close the connection."""
        self._reports.close()
        self._connection.release()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A broker, a delay server, and the coordinator's end of the queues."""
    ready = tmp_path / "ready"
    with run_broker(tmp_path) as broker_url:
        server = subprocess.Popen(
            [*OKU, "server", "--port", "0", "--ready-file", str(ready), "--delay", "20ms"],
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(ready.exists, 10, "the server listens")
            desk = Desk(build_app(broker_url, MESSAGE_KEY), f"http://{ready.read_text().strip()}")
            yield desk
            desk.close()
        finally:
            server.terminate()
            server.wait()


@pytest.fixture
def worker(desk: Desk, tmp_path: Path) -> Iterator[Process]:
    """A worker that waits for leases."""
    with run_worker(desk, tmp_path) as process:
        yield process


@contextmanager
def run_worker(desk: Desk, folder: Path, *flags: str, name: str = "w") -> Iterator[Process]:
    """Runs a worker of the desk's broker, which logs into a folder."""
    log = folder / f"{name}.log"
    with worker_process.run_worker(
        desk.app.conf.broker_url, "--grace", "5s", *flags, name=name, log=log
    ) as process:
        yield process


@contextmanager
def run_workers(desk: Desk, folder: Path, *flags: str) -> Iterator[None]:
    """Runs three workers: each takes two refused leases at once, and the next ones only seconds later."""
    with ExitStack() as stack:
        for name in ("w1", "w2", "w3"):
            stack.enter_context(run_worker(desk, folder, *flags, name=name))
        yield


def test_a_lease_is_claimed_executed_and_reported(desk: Desk, worker: Process) -> None:
    """The claim comes before the first request, the report after the last answer; both name the execution."""
    lease = desk.build_lease()
    send_lease(desk.app, lease)
    claim, report = desk.receive(), desk.receive()

    assert isinstance(claim, Claim)
    assert isinstance(report, Report)
    assert (claim.lease, claim.worker) == (lease.id, "w")
    assert (report.execution, report.incarnation) == (claim.execution, claim.incarnation)
    assert claim.at <= report.started_at <= report.ended_at
    assert find_fault(report, lease.start, lease.stop) is None
    assert report.outcomes == [50, 0, 0, 0, 0, 0]
    assert report.statuses == {"200": 50}
    assert report.latency.min_us >= 15_000


def test_a_doubled_message_is_executed_once(desk: Desk, worker: Process) -> None:
    """A lease that is already being executed is not begun again."""
    lease = desk.build_lease(400)
    send_lease(desk.app, lease)
    send_lease(desk.app, lease)
    other = desk.build_lease(10)
    send_lease(desk.app, other)

    reports = [desk.receive_report(), desk.receive_report()]

    assert sorted(report.lease for report in reports) == sorted([lease.id, other.id])


def test_no_more_than_two_leases_are_taken_at_a_time(desk: Desk, worker: Process) -> None:
    """A third lease waits in the queue, where other workers may take it."""
    leases = [desk.build_lease(400) for _ in range(3)]
    for lease in leases:
        send_lease(desk.app, lease)

    messages = [desk.receive() for _ in range(6)]

    kinds = "".join("c" if isinstance(message, Claim) else "r" for message in messages)
    assert kinds == "ccrcrr"


def test_a_broker_that_takes_no_writes_for_a_while_ends_no_worker(
    desk: Desk, worker: Process, tmp_path: Path
) -> None:
    """A Valkey on a full disk refuses writes; the worker reports its leases when that is over."""
    lease = desk.build_lease(400)
    send_lease(desk.app, lease)
    assert isinstance(desk.receive(), Claim)
    desk.allow_writes(is_allowed=False)
    wait_until(lambda: "NOREPLICAS" in (tmp_path / "w.log").read_text(), 15, "the worker is refused")
    time.sleep(3.0)
    desk.allow_writes(is_allowed=True)
    assert desk.receive_report().lease == lease.id
    other = desk.build_lease(10)
    send_lease(desk.app, other)
    assert desk.receive_report().lease == other.id
    assert worker.poll() is None


def test_a_lease_beyond_the_slots_is_claimed_at_once(desk: Desk, tmp_path: Path) -> None:
    """A worker that reconnects takes more leases than it has slots; none is lost, and nothing is logged."""
    others = desk.list_connections()
    with run_worker(desk, tmp_path):
        for _ in range(2):
            send_lease(desk.app, desk.build_lease(100_000))
            assert isinstance(desk.receive(), Claim)
        for _ in range(3):
            before = desk.list_connections() - others
            desk.cut(before)
            wait_until(lambda: bool(desk.list_connections() - others - before), 15, "the worker is back")  # noqa: B023
            lease = desk.build_lease(100_000)
            send_lease(desk.app, lease)
            claim = desk.receive(8)
            assert isinstance(claim, Claim)
            assert claim.lease == lease.id
        send_order(desk.app, Stop(run="run", up_to=9, grace_s=1.0))
        assert all(isinstance(desk.receive(), Report) for _ in range(5))
    log = (tmp_path / "w.log").read_text()
    assert "Connection to broker lost" in log
    assert "critical" not in log
    assert "PendingDeprecation" not in log


def test_a_stale_lease_is_given_back(desk: Desk, worker: Process) -> None:
    """A lease that should have started long ago is reported as not begun, without a claim."""
    lease = desk.build_lease(start_by=time.time() - 1)
    send_lease(desk.app, lease)
    report = desk.receive()

    assert isinstance(report, Report)
    assert (report.start, report.done) == (lease.start, lease.start)
    assert find_fault(report, lease.start, lease.stop) is None


def test_a_redelivered_message_is_given_back(desk: Desk) -> None:
    """A message that was delivered before is not acted on: another worker may be executing its lease."""
    lease = desk.build_lease()
    send_lease(desk.app, lease)
    with desk.app.connection_for_read() as connection, connection.SimpleQueue(LEASES_QUEUE) as queue:
        queue.get(timeout=5).reject(requeue=True)
    broker_url = desk.app.conf.broker_url
    command = [*OKU, "worker", "--broker-url", broker_url, "--name", "w"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        report = desk.receive()
    finally:
        process.kill()
        process.wait()

    assert isinstance(report, Report)
    assert report.done == report.start


def test_what_is_not_a_lease_is_dropped(desk: Desk, worker: Process) -> None:
    """Forged and malformed messages do not hold the worker up."""
    for document in ({}, "lease", 7, {"id": "x", "run": "r", "start": "0"}):
        desk.app.send_task(LEASE_TASK, args=[document], queue=LEASES_QUEUE)
    desk.app.send_task(LEASE_TASK, args=[], queue=LEASES_QUEUE)
    desk.app.send_task("oku.unknown", args=[1], queue=LEASES_QUEUE)
    with desk.app.connection_for_write() as connection:
        connection.Producer().publish(b"{", routing_key=LEASES_QUEUE, content_type="application/json")
    lease = desk.build_lease()
    send_lease(desk.app, lease)

    assert desk.receive_report().lease == lease.id
    assert worker.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(desk: Desk, worker: Process, number: signal.Signals) -> None:
    """On SIGTERM what is in flight finishes, every lease is reported, and the exit code is 0."""
    leases = [desk.build_lease(100_000), desk.build_lease(100_000)]
    for lease in leases:
        send_lease(desk.app, lease)
    assert isinstance(desk.receive(), Claim)
    assert isinstance(desk.receive(), Claim)
    time.sleep(0.5)
    worker.send_signal(number)

    reports = {report.lease: report for report in (desk.receive_report(), desk.receive_report())}

    assert worker.wait(10) == 0
    for lease in leases:
        assert find_fault(reports[lease.id], lease.start, lease.stop) is None
        assert reports[lease.id].unfinished == []
    assert 0 < sum(report.covered for report in reports.values()) < 100_000
    assert desk.is_empty(LEASES_QUEUE)


def test_an_idle_worker_ends_at_once_on_a_signal(desk: Desk, worker: Process) -> None:
    """A worker without a lease has nothing to wait for."""
    send_lease(desk.app, desk.build_lease(1))
    desk.receive_report()
    begun = time.monotonic()
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(10) == 0
    assert time.monotonic() - begun < 4


def test_a_file_that_never_ends_holds_no_worker_up(desk: Desk, tmp_path: Path) -> None:
    """A lease with a pipe to which nobody writes is refused, the next is executed, and SIGTERM drains."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with run_worker(desk, tmp_path, "--files-dir", str(tmp_path)) as worker:
        assert desk.refuse(cacert=str(pipe)).endswith("it is not a regular file")
        send_lease(desk.app, lease := desk.build_lease())
        assert desk.receive_report().lease == lease.id
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
    with run_workers(desk, tmp_path, "--files-dir", str(allowed)):
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
            send_lease(desk.app, desk.build_lease(1))
            desk.receive_report()
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == EXIT_STUCK
    finally:
        process.kill()
        process.wait()
    assert "the event loop has not answered for 3 s, it is at" in (tmp_path / "w.log").read_text()


def test_the_alive_file_is_touched_while_the_event_loop_answers(desk: Desk, tmp_path: Path) -> None:
    """The file is touched again and again from the start on: its age is what a liveness probe looks at."""
    file = tmp_path / "alive"
    with run_worker(desk, tmp_path, "--alive-file", str(file)):
        wait_until(file.exists, 15, "the file is there")
        first = file.stat().st_mtime_ns
        wait_until(lambda: file.stat().st_mtime_ns > first, 10, "the file is touched again")


@pytest.mark.parametrize("engine", Engine)
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
        send_lease(desk.app, desk.build_lease(5, spec=spec))
        assert desk.receive_report().outcomes[-1] == 5
        target.shutdown()
    log = (tmp_path / "w.log").read_text()
    assert "first protocol_error" in log
    assert "hunter2" not in log


@pytest.mark.parametrize("engine", Engine)
def test_secrets_are_put_in_where_requests_are_sent(
    desk: Desk, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only allowed names are read, once for each run; neither a report nor a log has the values."""
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
            send_lease(desk.app, desk.build_lease(1, spec=spec, run=run))
            report = desk.receive_report()
            assert report.outcomes[0] == 1, (tmp_path / "w.log").read_text()
            assert "hunter2" not in str(report)
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
    with run_workers(desk, tmp_path, "--allow-env", "MISSING"):
        for name in ("AWS_SECRET_ACCESS_KEY", "OKU_BROKER_URL", "PATH"):
            reason = desk.refuse(headers=(Header(f"A: {{env:{name}}}"),))
            assert reason == f"{{env:{name}}} is not allowed here: --allow-env {name} allows it"
        assert desk.refuse(body="{env:MISSING}") == "{env:MISSING}: this variable is not set here"
        assert desk.refuse(body="{file:x}").startswith("{file:x} is not allowed here")
        send_lease(desk.app, lease := desk.build_lease())
        assert desk.receive_report().lease == lease.id


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("requests", [10, 10**15])
def test_a_window_that_is_never_filled_takes_no_memory(
    desk: Desk, tmp_path: Path, engine: Engine, requests: int
) -> None:
    """A concurrency of a million, of a run or of a lease with ten requests, costs what ten cost."""
    with run_worker(desk, tmp_path):
        spec = Spec(urls=(Url(f"{desk.url}/{{i}}"),), concurrency=1_000_000, requests=requests, engine=engine)
        send_lease(desk.app, desk.build_lease(10, spec=spec))
        report = desk.receive_report(60)
    assert report.outcomes[0] == 10
    assert report.peak_rss_mb < 150


class _Babbler(StreamRequestHandler):
    """Answers what is no HTTP."""

    def handle(self) -> None:
        """One request."""
        self.request.recv(65_536)
        self.wfile.write(b"HTTP/1.1 what?\r\n\r\n")
