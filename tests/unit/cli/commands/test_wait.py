import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.transactions import change
from tests.unit.cli.command_line import call_oku

from oku_cli.backends.coordinator_ref import Endpoint, UnreachableError
from oku_cli.commands.wait import wait_remotely
from oku_cli.exit_code import ExitCode
from oku_cli.follow.watch import Watch
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, start_run
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec
from oku_core.spec.values.threshold import Threshold
from oku_core.spec.values.url import Url
from oku_core.summary.summary import Summary

_PLACE = (Url("http://127.0.0.1:9/"),)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a run of each kind in its data folder and no stack."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / ".oku"
    data.mkdir(mode=0o700)
    ledger = Ledger(data / "ledger.sqlite3")
    for index, run in enumerate(("done-1", "cut-1", "failed-1", "paused-1", "killed-1", "queued-1", "bad-1")):
        thresholds = (Threshold("p99 < 1s"),) if run == "bad-1" else ()
        name = "night" if index < 2 else ""
        change(
            ledger,
            create_run,
            run,
            Spec(requests=5, urls=_PLACE, name=name, thresholds=thresholds),
            float(index),
        )
    change(ledger, start_run, "done-1", 10.0)
    lease = deal_lease(ledger, "done-1", 5, 10.0)
    apply_batches(ledger, [build_batch(lease, build_checkpoint(lease))], now=11.0)
    for run, state in (
        ("cut-1", RunState.CANCELLED), ("failed-1", RunState.FAILED), ("paused-1", RunState.PAUSED),
        ("bad-1", RunState.CANCELLED), ("killed-1", RunState.RUNNING),
    ):  # fmt: skip
        change(ledger, change_state, run, state, 12.0, "so it is" if state == RunState.FAILED else "")
    ledger.close()
    return data


def test_a_run_that_does_not_go_on_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is that of following it to its end; the summary of a paused run says how to resume it."""
    codes = {
        "done-1": ExitCode.COMPLETED,
        "cut-1": ExitCode.CUT_SHORT,
        "failed-1": ExitCode.CUT_SHORT,
        "bad-1": ExitCode.NOT_PASSED,
    }
    assert {run: call_oku(monkeypatch, "wait", run) for run in codes} == codes
    assert call_oku(monkeypatch, "wait", "bad-1", "--allow-undecided") == ExitCode.CUT_SHORT
    for run in ("paused-1", "killed-1", "queued-1"):
        assert call_oku(monkeypatch, "wait", run) == ExitCode.CUT_SHORT
        assert f"oku resume {run}" in capsys.readouterr().out


def test_the_flags_of_watching_work_as_they_do_for_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Files and standard output get the summary; a name means the newest run that has it."""
    flags = ("--json", "--summary-json", "s.json", "--junit", "s.xml")
    assert call_oku(monkeypatch, "wait", "done-1", *flags) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["run"], printed["state"]) == ("done-1", "completed")
    assert json.loads((tmp_path / "s.json").read_text()) == printed
    assert "<testsuite" in (tmp_path / "s.xml").read_text()
    assert call_oku(monkeypatch, "wait", "night", "--json") == ExitCode.CUT_SHORT
    assert json.loads(capsys.readouterr().out)["run"] == "cut-1"


def test_a_run_that_is_not_found_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, a file of a pipeline has the error, too, and no folder is created."""
    for reference, said in [
        ("paused-2", "there is no run paused-2, did you mean paused-1?"),
        ("ed-1", "ed-1 may be "),
        ("", "RUN: "),
    ]:
        assert call_oku(monkeypatch, "wait", reference, "--junit", "s.xml") == ExitCode.WRONG_INPUT
        [line] = capsys.readouterr().err.splitlines()
        assert said in line
        assert "<error" in Path("s.xml").read_text()
    assert call_oku(monkeypatch, "wait", "latest", "--data-dir", "none") == ExitCode.WRONG_INPUT
    assert "none: there are no runs yet" in capsys.readouterr().err
    assert not Path("none").exists()


def serve_run(now: Summary, end: Summary, faults: list[int]) -> web.Application:
    """A coordinator with one run, as it is now and will be; it answers with the faults first."""

    async def list_runs(_: web.Request) -> web.Response:
        if faults:
            return web.json_response({"error": "it starts"}, status=faults.pop())
        return web.json_response([{"run": now.run, "name": now.name, "state": now.state}])

    async def send_end(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"event: end\ndata: " + msgspec.json.encode(end) + b"\n\n")
        return response

    async def give_summary(_: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(now))

    app = web.Application()
    app.add_routes([web.get("/api/runs", list_runs), web.get("/api/runs/{run}", give_summary)])
    app.add_routes([web.get("/api/runs/{run}/ticks", send_end)])
    return app


async def test_a_coordinator_that_is_away_at_first_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make_summary: Callable[..., Summary]
) -> None:
    """It may be restarting; the run is followed once it answers."""
    monkeypatch.setattr("oku_cli.follow.outage._SHORTEST_PAUSE_S", 0.01)
    summary, faults = make_summary(), [503, 503]
    async with TestServer(serve_run(summary, summary, faults)) as server:
        place = Endpoint(f"http://127.0.0.1:{server.port}", "t")
        code = await wait_remotely(summary.run, place, Watch(as_json=True, quiet=True))
        assert (code, faults) == (ExitCode.COMPLETED, [])
        assert json.loads(capsys.readouterr().out)["run"] == summary.run
        monkeypatch.setattr("oku_cli.follow.outage.TRIES_S", 0.0)
        faults.append(503)
        with pytest.raises(UnreachableError, match="it starts"):
            await wait_remotely(summary.run, place, Watch(quiet=True))


async def test_the_dashboard_shows_a_run_from_its_start(
    capsys: pytest.CaptureFixture[str], make_summary: Callable[..., Summary]
) -> None:
    """Not from when the waiting began; the link to a run that is over is shown once."""
    grafana = "http://127.0.0.1:3000"
    end = make_summary(started_at="1970-01-01T00:16:40.000Z", ended_at="1970-01-01T00:17:40.000Z")
    for state, links in ((RunState.RUNNING, ["now", "1070000"]), (RunState.COMPLETED, ["1070000"])):
        now = msgspec.structs.replace(
            end, state=state, ended_at=None if state == RunState.RUNNING else end.ended_at
        )
        async with TestServer(serve_run(now, end, [])) as server:
            place = Endpoint(f"http://127.0.0.1:{server.port}", "t")
            await wait_remotely(end.run, place, Watch(grafana=grafana))
        shown = re.findall(r"from=(\d+)&to=(\w+)", "".join(capsys.readouterr()))  # own text: a link of ours
        assert shown == [("990000", until) for until in links]
