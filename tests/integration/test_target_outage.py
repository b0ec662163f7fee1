"""A target that goes away and comes back is told of at once; a run of which nothing is ok ends by itself."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.free_ports import pick_port
from tests.kit.runs.local_run import LocalRun, starting_runs, wait_until


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers every request with an empty body, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(port: int) -> Iterator[None]:
    """Answer at a port of this machine within the block."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def wait_for_line(run: LocalRun, text: str) -> None:
    """Wait until a run has printed something."""
    wait_until(lambda: text in run.output, 40, text, every_s=0.2)


def test_a_target_that_goes_away_and_comes_back_is_told_of(tmp_path: Path) -> None:
    """While it is away a notice says so, and how requests end; then it says how long that took.

    The report has both as events, and the run goes on to its end.
    """
    port = pick_port()
    with starting_runs(tmp_path) as start:
        with serving(port):
            run = start("run", f"http://127.0.0.1:{port}/{{i}}", "--rate", "20/s", "-z", "40s", "-w", "1")
            run.wait_for_accounted(60)
        wait_for_line(run, "the target is gone: no request has been ok for 1")
        with serving(port):
            wait_for_line(run, "the target answers again after ")
            summary = run.finish()
        assert "most ended as connect error" in run.output
    assert (summary["state"], summary["accounted"]) == ("completed", 800)
    assert summary["target"] == f"http://127.0.0.1:{port}/{{i}}"
    assert summary["outcomes"]["ok"] > 100
    assert summary["outcomes"]["connect_error"] > 100
    page = (tmp_path / "data" / "reports" / f"{summary['run']}.html").read_text()
    assert "the target is gone: no request has been ok for 1" in page
    assert "the target answers again after " in page
    assert 'class="state caution"' in page


def test_a_run_whose_target_stays_away_is_paused_and_can_be_resumed(tmp_path: Path) -> None:
    """Its account is exact: what was in flight ended, and what was not sent is left for later."""
    port, flags = pick_port(), ("-n", "300", "--max-rate", "20/s", "-w", "1", "--stop-when-down", "3s")
    with starting_runs(tmp_path) as start:
        with serving(port):
            run = start("run", f"http://127.0.0.1:{port}/{{i}}", *flags)
            run.wait_for_accounted(60)
        paused = run.finish()
        assert run.process.returncode == 3
        assert paused["state"] == "paused"
        assert paused["reason"].startswith("the target is down: no request was ok within 3 s, most ended as")
        assert paused["resent_at_most"] == 0
        assert f"oku resume {paused['run']}" in run.output
        with serving(port):
            done = start("resume", paused["run"]).finish()
    assert (done["state"], done["accounted"], done["resent_at_most"]) == ("completed", 300, 0)
    assert done["outcomes"]["ok"] > paused["outcomes"]["ok"]


def test_a_run_of_which_nothing_was_ever_ok_fails_after_half_a_minute(tmp_path: Path) -> None:
    """Nobody asked for that; one that says never goes on."""
    url = f"http://127.0.0.1:{pick_port()}/"
    flags = ("--rate", "20/s", "-z", "36s", "-w", "1")
    with starting_runs(tmp_path) as start:
        ends = start("run", url, *flags, data_dir="ends")
        goes_on = start("run", url, *flags, "--stop-when-down", "never", data_dir="goes-on")
        failed, completed = ends.finish(), goes_on.finish()
        assert ends.process.returncode == 1
    assert failed["state"] == "failed"
    assert failed["reason"].startswith("the target is down: no request was ever ok within 30 s")
    assert 500 < failed["accounted"] < 720
    assert (completed["state"], completed["accounted"]) == ("completed", 720)
    for summary, data_dir in ((failed, "ends"), (completed, "goes-on")):
        page = (tmp_path / data_dir / "reports" / f"{summary['run']}.html").read_text()
        assert 'class="state bad"' in page
