"""The logs of real processes: each line of standard error is an object, whoever wrote it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.runs.local_run import OKU, find_worker, wait_until
from tests.kit.servers.delay_server import Start, until
from tests.kit.workers.progress_ear import hear_workers
from tests.kit.workers.worker_process import run_worker

from oku_core.broker.celery_app import LEASE_TASK, build_app, build_lease_queue
from oku_core.broker.sending import send_to_workers
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

Line = dict[str, Any]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts delay servers that end with the test."""
    servers = Start(tmp_path)
    yield servers
    servers.end()


def read(log: Path) -> list[Line]:
    """The lines of a log; each must be an object of the form that docs/metrics.md describes."""
    lines: list[Line] = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        assert list(line)[:4] == ["time", "level", "logger", "message"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["level"] in {"info", "warning", "error", "critical"}
        assert isinstance(line["pid"], int)
    return lines


def find(lines: list[Line], text: str) -> Line:
    """The first line whose sentence has `text` in it."""
    found = next((line for line in lines if text in line["message"]), None)
    assert found is not None, (text, lines)
    return found


def send_what_is_wrong(broker_url: str) -> None:
    """What a worker can only drop or give back: a stale lease, and messages that are none."""
    app = build_app(broker_url, MESSAGE_KEY)
    with hear_workers(app) as heard:
        wait_until(lambda: "w" in heard, 20, "the worker speaks")
    incarnation = heard["w"].incarnation
    queue = build_lease_queue(incarnation)
    app.send_task("oku.unknown", args=["two\nlines"], queue=queue)
    app.send_task(LEASE_TASK, args=["no lease"], queue=queue)
    stale = Lease(id="r.7.abcd", run="r", ranges=[(0, 9)], limit=9)
    spec = Spec(urls=(Url("http://h/"),))
    send_to_workers(
        app,
        [LeaseBatch(run="r", incarnation=incarnation, leases=[stale], start_by=time.time() - 1, spec=spec)],
    )
    app.close()


def finish_a_run(api: CoordinatorApi, url: str, log: Path) -> str:
    """Have a run of many leases carried out, and wait until its worker has logged it; the run."""
    run = api.submit(url=url, requests=500, range_size=20, concurrency=20, name="checkout")
    api.wait_for_state(run, "completed")
    wait_until(lambda: f"run {run} (checkout)" in log.read_text(), 20, "the run is logged")
    return run


def kill_in_a_run(api: CoordinatorApi, worker: "subprocess.Popen[bytes]", url: str, log: Path) -> str:
    """Start a run, kill its worker, wait until the coordinator has taken a lease back; the run."""
    run = api.submit(url=url, requests=1_000_000, concurrency=5)
    wait_until(lambda: bool(api.summary(run)["accounted"]), 30, "something is accounted")
    worker.kill()
    wait_until(lambda: "is taken back" in log.read_text(), 30, "a lease is taken back")
    api.call("POST", f"/api/runs/{run}/cancel")
    return run


def test_every_log_line_of_every_process_is_json(tmp_path: Path, start: Start) -> None:
    """Lines of Oku and of Celery alike are JSON; those of a lease name run, lease and worker."""
    url = f"{start('--delay', '20ms').url}/{{i}}"
    log, worker_log = tmp_path / "data" / "coordinator.log", tmp_path / "worker.log"
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", "--worker-timeout", "1s") as api,
        run_worker(broker_url, "--grace", "0s", log=worker_log) as worker,
    ):
        finished = finish_a_run(api, url, worker_log)
        well = read(worker_log)
        send_what_is_wrong(broker_url)
        wait_until(lambda: "is given back" in worker_log.read_text(), 20, "the stale lease is given back")
        worker_pid = find_worker(worker.pid)
        run = kill_in_a_run(api, worker, url, log)

    # All that a healthy worker has to say.
    assert [line["level"] for line in well] == ["info", "info"]
    assert well[0]["message"].startswith("connected to the coordinator through redis")
    assert well[1]["message"].startswith(f"run {finished} (checkout): 500 requests in ")
    fields = {"run": finished, "run_name": "checkout", "worker": "w", "requests": 500, "ok": 500}
    assert fields.items() <= well[1].items()
    assert 0.4 < well[1]["seconds"] < 30

    told = read(worker_log)
    assert {line["worker"] for line in told} == {"w"}
    assert {line["pid"] for line in told} == {worker_pid}
    assert find(told, "were dropped")["logger"] == "oku_workers.process"
    given_back = find(told, "is given back")
    assert (given_back["run"], given_back["lease"], given_back["level"]) == ("r", "r.7.abcd", "info")

    told = read(log)
    assert find(told, "worker w joined")["worker"] == "w"
    assert find(told, f"run {run} starts")["run"] == run
    assert find(told, "is dead")["worker"] == "w"
    taken_back = find(told, "is taken back")
    assert (taken_back["run"], taken_back["worker"], taken_back["reason"]) == (run, "w", "worker_lost")
    assert taken_back["lease"] in taken_back["message"]


@pytest.mark.parametrize(
    ("command", "module", "function"),
    [
        ("coordinator", "oku_coordinator", "serve_runs"),
        ("worker", "oku_workers", "serve"),
        ("server", "oku_server", "serve"),
    ],
)
def test_an_error_that_ends_a_process_is_one_object(command: str, module: str, function: str) -> None:
    """The object has the traceback, whichever process it is."""
    fail = (
        f"import oku_cli.main, {module}.process, sys\n"
        "def serve(_): raise ZeroDivisionError('a fault\\nof our own')\n"
        f"assert {module}.process.{function}\n"
        f"{module}.process.{function} = serve\n"
        f"sys.argv = ['oku', '{command}']\n"
        "oku_cli.main.main()\n"
    )
    environment = os.environ | {"OKU_BROKER_URL": "redis://127.0.0.1:9", "OKU_TOKEN": TOKEN}
    ended = subprocess.run(
        [sys.executable, "-c", fail], env=environment, capture_output=True, text=True, timeout=20, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    line = json.loads(ended.stderr)
    assert (line["level"], line["message"]) == ("critical", "ended by ZeroDivisionError: a fault\nof our own")
    assert line["error"].startswith("Traceback (most recent call last):\n")
    assert line.get("worker") == (os.uname().nodename if command == "worker" else None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["worker"], "Missing option '--broker-url'"),
        (["worker", "--broker-url", "mysql://x"], "--broker-url: the URL must begin with one of redis"),
        (["coordinator", "--broker-url", "redis://x", "--worker-timeout", "soon"], "--worker-timeout: soon"),
        (["server", "--delay", "soon"], "--delay: soon is not a delay"),
    ],
)
def test_a_users_mistake_is_one_object(arguments: list[str], message: str, tmp_path: Path) -> None:
    """A user's mistake is one JSON object, and the exit code is 2 as everywhere."""
    ended = subprocess.run(
        [*OKU, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False
    )
    assert ended.returncode == 2
    assert message in json.loads(ended.stderr)["message"]


@pytest.mark.parametrize("flag", ["--log-format", "--log-level"])
@pytest.mark.parametrize("command", ["coordinator", "worker", "server"])
def test_a_log_setting_that_is_not_allowed_is_answered_in_one_line(command: str, flag: str) -> None:
    """The line names the flag, the value and what is allowed."""
    ended = subprocess.run(
        [*OKU, command, flag, "loud"], capture_output=True, text=True, timeout=20, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert f"Invalid value for '{flag}': 'loud' is not one of" in ended.stderr


def test_a_generated_token_is_logged(tmp_path: Path) -> None:
    """The token is logged even at a quiet log level: nobody could call the coordinator otherwise."""
    with run_broker(tmp_path) as broker_url:
        command = [
            *OKU, "coordinator", "--broker-url", broker_url, "--data-dir", str(tmp_path / "data"),
            "--port", "0", "--ready-file", str(tmp_path / "ready"), "--log-level", "warning",
        ]  # fmt: skip
        with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
            until((tmp_path / "ready").exists)
            process.terminate()
    (line,) = read(tmp_path / "log")
    assert re.fullmatch(
        r"no token was given; API calls must carry \S{32} until this process ends", line["message"]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="children are known on Linux only")
def test_the_processes_of_a_server_write_one_log(start: Start, tmp_path: Path) -> None:
    """Each line says which process it is from."""
    server = start("--processes", "2")
    os.kill(server.children[0], signal.SIGKILL)
    until(lambda: "started again" in server.log)
    lines = read(tmp_path / "server-0" / "log")
    assert [line["pid"] for line in lines] == [server.process.pid] * 2
    assert "ended with signal 9, it is started again" in lines[1]["message"]
