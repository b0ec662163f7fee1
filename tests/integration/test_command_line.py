"""The `oku` command as a user types it: what it does, prints and exits with."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import jsonschema
import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.clients.odd_targets import TARGETS
from tests.kit.clients.target_server import TargetPort, TargetServer
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.free_ports import pick_port
from tests.kit.runs.account import assert_account_balances, assert_completed
from tests.kit.runs.local_run import OKU, Start, is_alive, run_oku, wait_until
from tests.kit.workers.worker_process import run_worker

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "summary.schema.json").read_text())


@pytest.fixture
def server_url(tmp_path: Path) -> Iterator[str]:
    """A delay server that the user started himself."""
    ready = tmp_path / "ready"
    command = [*OKU, "server", "--port", "0", "--ready-file", str(ready), "--body", "12345"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_until(ready.exists, 10, "the server listens")
        yield f"http://{ready.read_text().strip()}"
        process.terminate()


@dataclass(frozen=True)
class EndedCommand:
    """A command that is over, and the folder in which it was called."""

    folder: Path
    ended: "subprocess.CompletedProcess[str]"


@pytest.fixture(scope="module")
def ended_run(tmp_path_factory: pytest.TempPathFactory) -> EndedCommand:
    """A run of 500 requests whose stack is gone, for those who only look at it."""
    folder = tmp_path_factory.mktemp("ended")
    return EndedCommand(folder, run_oku("run", "--requests", "500", "--json", cwd=folder))


BAD_INPUT = {
    "zero requests": (["run", "--requests", "0"], "--requests: 0 is not at least 1"),
    "negative concurrency": (["run", "--concurrency", "-3"], "--concurrency: -3 is not at least 1"),
    "no key": (
        ["run", "--once", "a b"],
        "--once: a b is not a key of 1 to 255 printable ASCII characters, without spaces, commas, double",
    ),
    "no number": (["run", "--workers", "two"], "--workers: two is not a number"),
    "no scheme": (["run", "--url", "host:80/x"], "--url: host:80/x has no scheme, write http://host:80/x"),
    "unknown placeholder": (
        ["run", "--url", "http://h/{n}"],
        "--url: http://h/{n} has the unknown placeholder {n}",
    ),
    "unknown engine": (["run", "--engine", "curl"], "--engine: curl is not one of auto, aiohttp"),
    "delay with url": (["run", "--url", "http://h/", "--delay", "1s"], "--delay: applies only to Oku's own"),
    "unknown flag": (["run", "--reqests", "5"], "No such option '--reqests', did you mean --requests?"),
    "unknown command": (["rum"], "No such command 'rum', did you mean run or rm?"),
    "two files": (
        ["run", "a.yaml", "b.yaml"],
        "b.yaml: only one spec file is allowed, a.yaml was given already",
    ),
    "wrong URL as an argument": (
        ["run", "http://h/{n}"],
        "--url: http://h/{n} has the unknown placeholder {n}",
    ),
    "no ASCII": (
        ["run", "--header", "Größe: 1"],
        "--header: Größe is not a valid header name: use ASCII letters",
    ),
    "wrong length": (
        ["run", "--body", "abc", "--header", "Content-Length: 5"],
        "--header: Content-Length: 5: the body has 3 bytes; leave the header out, Oku sends it",
    ),
    "URL without a scheme": (
        ["run", "localhost:8080/x", "-n", "10"],
        "localhost:8080/x: there is no such spec file; to test a URL, write http://localhost:8080/x",
    ),
    "URL of another scheme": (["run", "ftp://h/"], "--url: ftp://h/ has the scheme ftp; only http and https"),
    "home of nobody": (["run", "--cacert", "~nobody-of-this-name/x"], "~nobody-of-this-name/x"),
    "missing body": (["run", "-d", "@nowhere.json"], "--body: @nowhere.json: No such file or directory"),
    "spec and body on standard input": (["run", "-", "-d", "@-"], "standard input: is empty"),
    "missing file": (["run", "nowhere.yaml"], "nowhere.yaml: No such file"),
    "more files than allowed": (
        ["run", "--concurrency", "999_999"],
        "for each of 2 workers are more than the",
    ),
    "unwritable json": (
        ["run", "--summary-json", "no/such/file"],
        "--summary-json: no/such/file is not a file",
    ),
    "unknown run to show": (["show", "x"], ".oku: there are no runs yet, start one with: oku run"),
    "unknown run to resume": (["resume", "x"], ".oku: there are no runs yet, start one with: oku run"),
    "no token": (["run", "--coordinator", "http://h:9"], "--token: a remote coordinator asks for"),
    "no coordinator": (["run", "--coordinator", "nowhere"], "--coordinator: nowhere is not a URL"),
    "no broker": (["worker", "--broker-url", "mysql://x"], "--broker-url: the URL must begin with"),
    "bad worker timeout": (
        ["coordinator", "--broker-url", "redis://x", "--worker-timeout", "soon"],
        "--worker-timeout: soon is",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_wrong_input_is_answered_in_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    """One line names the place, the exit code is 2, and nothing is started or left behind."""
    ended = run_oku(*arguments, cwd=tmp_path)

    assert ended.returncode == 2
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("requests: 10\nconcurency: 3", "spec.yaml: concurency: unknown key, did you mean concurrency?"),
        ("requests: -1", "spec.yaml: requests: -1 is not at least 1"),
        ("requests: true", "spec.yaml: requests: true is not a number"),
        ("- requests", "spec.yaml: ['requests'] is not a mapping of keys to values"),
        ("a: [", "spec.yaml: line 2: is not YAML: "),
    ],
)
def test_a_wrong_file_is_answered_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    """The line names file, key and value."""
    (tmp_path / "spec.yaml").write_text(text)

    ended = run_oku("run", "spec.yaml", cwd=tmp_path)

    assert ended.returncode == 2
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]


@pytest.mark.parametrize("command", ["server", "coordinator"])
def test_a_port_in_use_is_answered_in_one_line(tmp_path: Path, command: str) -> None:
    """The line names the port."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        flags = []
        if command == "coordinator":  # its port of files would be the next one, which anybody may have
            flags = ["--broker-url", "redis://127.0.0.1:9", "--token", TOKEN, "--files-port", "0"]
        ended = run_oku(command, "--port", port, "--log-format", "text", *flags, cwd=tmp_path)

    assert ended.returncode == 2
    assert ended.stderr == f"oku: --port: {port} is in use on 127.0.0.1\n"


def test_a_url_needs_no_flag(start: Start, tmp_path: Path, server_url: str) -> None:
    """A URL may stand beside a file, which may be empty, and beside other URLs."""
    spec = tmp_path / "spec.yaml"
    spec.write_text("")
    urls = (f"{server_url}/a/{{i}}", "--url", f"{server_url}/b/{{i}}")
    run = start("run", *urls, str(spec), "--requests", "100")

    summary = run.finish()

    assert run.process.returncode == 0
    assert summary["statuses"] == {"200": 100}
    assert summary["servers"] is None


def test_a_run_from_a_file_with_flags(start: Start, tmp_path: Path, server_url: str) -> None:
    """Flags override the file; the summary keeps to its schema and says what came of every request."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"requests: 99\nurl: '{server_url}/items/{{i}}'\nconcurrency: 7\nname: from file\n")
    run = start("run", str(spec), "--requests", "1_500", "--name", "from flag")

    summary = run.finish()

    assert run.process.returncode == 0
    jsonschema.validate(summary, SCHEMA)
    assert_completed(summary)
    assert (summary["requests"], summary["name"]) == (1500, "from flag")
    assert summary["outcomes"]["ok"] == 1500
    assert summary["bytes_received"] == 5 * 1500
    assert summary["servers"] is None
    assert summary["latency_ms"]["min"] <= summary["latency_ms"]["p50"] <= summary["latency_ms"]["max"]


class Recorder(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[tuple[str, str | None, bytes]]] = []

    def do_POST(self) -> None:
        """Answer with nothing."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Content-Type"], body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def recorder_url() -> Iterator[str]:
    """A target that keeps the POST requests that it gets."""
    Recorder.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        Thread(target=server.serve_forever).start()
        yield f"HTTP://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_flags_that_other_tools_have_taught(
    tmp_path: Path, recorder_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One URL, a file and short flags: each byte of the file is posted, as JSON, as often as asked for."""
    monkeypatch.setenv("KEY", "k")
    (tmp_path / "body.json").write_text('{"a": {"b": "größe"}, "id": {i}, "key": "{env:KEY}"}\n')
    flags = ["-n", "10", "-c50", "-d", "@body.json", "-H", "X: y", "-t", "5s", "-w1", "--allow-env", "KEY"]

    ended = run_oku("run", *flags, f"{recorder_url}/{{i}}", "--json", cwd=tmp_path)

    assert json.loads(ended.stdout)["outcomes"]["ok"] == 10, ended.stderr
    assert sorted(Recorder.seen) == [
        (f"/{i}", "application/json", f'{{"a": {{"b": "größe"}}, "id": {i}, "key": "k"}}\n'.encode())
        for i in range(10)
    ]


def test_a_spec_and_a_body_come_from_standard_input(tmp_path: Path, recorder_url: str) -> None:
    """Flags stand beside the spec; without a number, a target that is not Oku's own gets 1,000 requests."""
    spec = json.dumps({"url": recorder_url, "body": "@@me", "requests": 7}, indent="\t")
    ended = run_oku("run", "-", "-n", "3", "--json", cwd=tmp_path, given=spec)
    assert json.loads(ended.stdout)["requests"] == 3, ended.stderr
    assert Recorder.seen == [("/", "application/octet-stream", b"@me")] * 3

    Recorder.seen.clear()
    ended = run_oku("run", recorder_url, "-c2", "-d", "@-", "--json", cwd=tmp_path, given="a\r\n")
    assert json.loads(ended.stdout)["outcomes"]["ok"] == 1000, ended.stderr
    assert Recorder.seen == [("/", "application/octet-stream", b"a\r\n")] * 1000


def test_json_goes_to_standard_output_alone(ended_run: EndedCommand) -> None:
    """With `--json`, standard output holds the summary and nothing else; people read standard error."""
    ended = ended_run.ended

    assert ended.returncode == 0
    summary = json.loads(ended.stdout)
    jsonschema.validate(summary, SCHEMA)
    assert summary["servers"] == {"served": 500}
    assert "500 of 500 accounted" in ended.stderr


def test_targets_that_fail_are_accounted(start: Start, tmp_path: Path) -> None:
    """A run against a port that nobody listens on completes, and has not passed."""
    run = start("run", "--url", f"http://127.0.0.1:{pick_port()}/", "--requests", "500")

    summary = run.finish()

    assert run.process.returncode == 1
    assert (summary["state"], summary["verdict"]) == ("completed", "failed")
    assert summary["outcomes"]["connect_error"] == 500
    assert summary["latency_ms"]["p50"] is None
    jsonschema.validate(summary, SCHEMA)


def test_a_run_of_a_target_that_is_not_there_says_why(tmp_path: Path) -> None:
    """A first run often ends so: the screen says what to check, and the reason, once."""
    ended = run_oku("run", f"http://127.0.0.1:{pick_port()}/", "-n", "20", cwd=tmp_path)

    assert "no connection could be made: check scheme, host and port of the URL" in ended.stdout
    assert re.search(r"\n +connect error +refused +20 +100 % +0 +19 *\n", ended.stdout)
    assert ended.stdout.count("refused") == 1


def test_a_truncated_body_a_redirect_loop_and_a_proxy_that_refuses_say_what_to_try(tmp_path: Path) -> None:
    """Each has a diagnosis of its own, and none sends the user to look at scheme and port of the URL."""
    odd = ("body-too-short", "loop", "proxy-403", "proxy-407-in-clear-text")
    server = TargetServer({name: TARGETS[name].replies for name in odd}, {})
    url, proxy = (f"http://127.0.0.1:{server.ports[each]}" for each in (TargetPort.PLAIN, TargetPort.PROXY))
    asks_proxy = ("https://proxy-403.example/", "-x", proxy)
    told = [
        ((f"{url}/body-too-short/",), "no response was complete: look for a crash"),
        (
            (f"{url}/loop/", "--max-redirects", "5"),
            "redirections did not end: curl -IL shows where they lead",
        ),
        (asks_proxy, "the proxy made no connection to the target: check host and port"),
        (("http://any.example/proxy-407-in-clear-text/", "-x", proxy), "the proxy asks for a user"),
        (("http://any.example/", "-x", f"http://127.0.0.1:{pick_port()}"), "the proxy did not answer"),
    ]
    with closing(server):
        for flags, diagnosis in told:
            ended = run_oku("run", *flags, "-n", "4", cwd=tmp_path)
            assert ended.returncode == 1, flags
            assert diagnosis in " ".join(ended.stdout.split()), ended.stdout
            assert "check scheme" not in ended.stdout.replace("check scheme, host and port of --proxy", ""), (
                flags
            )


def test_runs_and_show_after_the_run(ended_run: EndedCommand) -> None:
    """A run can be listed and shown when its stack is gone, as it was shown at its end.

    Its report is where --html asks for it and in the data folder, which even --quiet names. All of them name
    its engine, and why that is not the fastest.
    """
    folder, first = ended_run.folder, json.loads(ended_run.ended.stdout)
    flags = ("--requests", "200", "--cookies", "--json", "--quiet", "--html", "page.html")
    again = run_oku("run", *flags, cwd=folder)
    second = json.loads(again.stdout)

    listed = run_oku("runs", cwd=folder)
    shown = run_oku("show", first["run"], "--json", cwd=folder)
    read = run_oku("show", second["run"], cwd=folder)

    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [second["run"], first["run"]]
    assert all("delay servers · " in line for line in listed.stdout.splitlines()[1:])
    assert json.loads(shown.stdout) == first
    assert f" report      .oku/reports/{second['run']}.html\n" in again.stderr
    page, reason = (folder / "page.html").read_text(), "aiohttp: needs cookies"
    assert second["run"] in page
    assert "200 of 200 accounted" in read.stdout
    assert all(reason in shown for shown in (page, read.stdout, listed.stdout.splitlines()[1]))
    assert listed.stdout.splitlines()[2].rstrip().endswith("· httptools")
    assert (first["engine"], second["engine"], second["engine_reason"]) == (
        "httptools",
        "aiohttp",
        "needs cookies",
    )
    assert (listed.returncode, shown.returncode, read.returncode) == (0, 0, 0)


def test_pause_resume_and_cancel_from_another_terminal(start: Start, tmp_path: Path) -> None:
    """`oku pause` lets the run rest, `oku resume` goes on, `oku cancel` ends it; nothing is sent twice."""
    run = start("run", "--requests", "1M", "--delay", "20ms")
    run.wait_for_accounted(500)
    where = ("--data-dir", str(run.data_dir))
    run_id = run.run_id()
    shown = run_oku("show", run_id, "--json", *where, cwd=tmp_path)
    paused = run_oku("pause", run_id, *where, cwd=tmp_path)
    summary = run.finish()

    assert json.loads(shown.stdout)["state"] == "running"
    assert paused.returncode == 0
    assert f"resume {run_id} --data-dir {run.data_dir}" in paused.stdout
    assert summary["state"] == "paused"
    assert run.process.returncode == 3
    assert summary["servers"]["served"] == summary["accounted"]
    again = run_oku("pause", run_id, *where, cwd=tmp_path)
    assert again.returncode == 2
    assert "nothing to pause" in again.stderr

    resumed = start("resume", run_id)
    resumed.wait_for_accounted(summary["accounted"] + 500)
    cancelled = run_oku("cancel", run_id, *where, cwd=tmp_path)
    end = resumed.finish()

    assert cancelled.returncode == 0
    assert end["state"] == "cancelled"
    assert resumed.process.returncode == 3
    assert end["resent_at_most"] == 0
    assert_account_balances(end)
    refused = run_oku("resume", run_id, *where, cwd=tmp_path)
    assert refused.returncode == 2
    assert "is cancelled, it cannot be resumed" in refused.stderr


def test_cancel_now_does_not_wait_for_what_is_in_flight(start: Start, tmp_path: Path) -> None:
    """A plain cancel waits for answers; `--now`, given then or at first, drops them and counts none."""
    for first in ("--now", ""):
        data = f"data{first}"
        run = start("run", "-n", "1000", "-c", "20", "-w", "1", "--delay", "5m", "-t", "10m", data_dir=data)
        where = ("--data-dir", str(run.data_dir))
        run.wait_for_leases()
        wait_until(lambda run=run: "in flight 20 " in run.output, 20, "the window is full")  # type: ignore[misc]
        if not first:
            assert "is cancelling" in run_oku("cancel", "latest", *where, cwd=tmp_path).stdout
            time.sleep(3)
            assert run.process.poll() is None
        cancelled_at = time.monotonic()
        assert "is cancelling" in run_oku("cancel", "latest", "--now", *where, cwd=tmp_path).stdout
        summary = run.finish(20)
        assert time.monotonic() - cancelled_at < 10
        assert (summary["state"], summary["accounted"]) == ("cancelled", 0)
        assert 20 <= summary["resent_at_most"] <= 20 * 4


def test_cancel_of_a_paused_run_needs_no_stack(start: Start, tmp_path: Path) -> None:
    """A run that rests can be ended for good without starting anything."""
    run = start("run", "--requests", "1M", "--delay", "20ms")
    run.wait_for_accounted(100)
    run_oku("pause", run.run_id(), "--data-dir", str(run.data_dir), cwd=tmp_path)
    run.finish()

    cancelled = run_oku("cancel", run.run_id(), "--data-dir", str(run.data_dir), cwd=tmp_path)

    assert cancelled.returncode == 0
    assert "is cancelled" in cancelled.stdout


def test_no_child_survives_the_command(start: Start) -> None:
    """Killed with -9, the command takes its whole stack with it."""
    run = start("run", "--requests", "1M", "--delay", "20ms", "--workers", "2", "--servers", "2")
    run.wait_for_leases()
    children = run.children()
    assert set(children) == {"coordinator", "server", "worker-1", "worker-2"}
    everyone = find_descendants(run.process.pid)
    assert len(everyone) >= 6  # two processes of the delay server among them
    run.process.kill()

    wait_until(lambda: not any(map(is_alive, everyone)), 15, "all have died")


def test_a_run_at_a_remote_coordinator(tmp_path: Path, server_url: str) -> None:
    """`--coordinator` uses a coordinator that runs already, and workers that joined by themselves."""
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data") as api,
        run_worker(broker_url),
    ):
        where = ("--coordinator", api.url, "--token", TOKEN)
        flags = ("--url", f"{server_url}/{{i}}", "--requests", "2000", "--json")
        ended = run_oku("run", *flags, *where, cwd=tmp_path)
        wrong = run_oku("run", "--coordinator", api.url, "--token", "guess", cwd=tmp_path)
        listed = run_oku("runs", *where, cwd=tmp_path)
    summary: dict[str, Any] = json.loads(ended.stdout)

    assert ended.returncode == 0
    assert_completed(summary)
    assert wrong.returncode == 2
    assert wrong.stderr == "oku: the token is missing or wrong\n"
    assert summary["run"] in listed.stdout


def find_descendants(pid: int) -> list[int]:
    """All processes below one."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [descendant for child in children for descendant in find_descendants(child)]


def test_names_in_brackets_are_not_markup(tmp_path: Path) -> None:
    """A folder and a run whose names look like rich's markup are shown as they are, and used as they are."""
    ended = run_oku("run", "--data-dir", "d[/b]", "--name", "[red]x[/]", "--requests", "20", cwd=tmp_path)

    assert ended.returncode == 0, ended.stderr
    assert "· [red]x[/] ·" in ended.stdout
    assert " report      d[/b]/reports/" in ended.stdout
    assert len(list((tmp_path / "d[" / "b]" / "reports").iterdir())) == 1


def test_a_short_run_has_no_flag(start: Start) -> None:
    """A short run keeps its worker busy while it lasts, which says nothing about its latencies."""
    summary = start("run", "--requests", "300", "--workers", "1", "--concurrency", "300").finish()

    assert summary["validity"] == []


def test_a_secret_is_in_no_file_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret is not even sent unless the command allows it: a spec file may be somebody else's."""
    monkeypatch.setenv("SHOP_TOKEN", "hunter2")
    run = ["run", "--requests", "50", "--header", "X-Key: {env:SHOP_TOKEN}", "--json"]
    refused = run_oku(*run, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == ("oku: {env:SHOP_TOKEN} is not allowed here: --allow-env SHOP_TOKEN allows it\n")
    assert list(tmp_path.iterdir()) == []

    ended = run_oku(*run, "--allow-env", "SHOP_TOKEN", cwd=tmp_path)

    assert json.loads(ended.stdout)["outcomes"]["ok"] == 50, ended.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"{env:SHOP_TOKEN}" in path.read_bytes() for path in files)
    assert not [path for path in files if b"hunter2" in path.read_bytes()]
    assert "hunter2" not in ended.stdout + ended.stderr
