import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from oku_cli.client import UnreachableError
from oku_cli.drive import InterruptedAtOnceError, Watch, build_hint, judge, run_async, write_json
from oku_cli.exit_code import ExitCode
from oku_core.errors import UserError
from oku_core.run import RunState
from oku_core.spec import Engine
from oku_core.summary import Flag, LatencySummary, OutcomeCounts, Summary, Validity

SUMMARY = Summary(
    run="r", name="", state=RunState.COMPLETED, engine=Engine.AIOHTTP,
    requests=1, accounted=1, resent_at_most=0,
    outcomes=OutcomeCounts(
        ok=1, unexpected_status=0, timeout=0, connect_error=0, disconnected=0, protocol_error=0
    ),
    statuses={"200": 1}, bytes_received=1, started_at=None, ended_at=None, active_s=1.0, throughput_rps=1.0,
    latency_ms=LatencySummary(), histogram="", workers=[], servers=None, validity=[],
)  # fmt: skip


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (RunState.COMPLETED, ExitCode.COMPLETED),
        (RunState.PAUSED, ExitCode.CUT_SHORT),
        (RunState.CANCELLED, ExitCode.CUT_SHORT),
        (RunState.FAILED, ExitCode.CUT_SHORT),
    ],
)
def test_the_exit_code_says_how_the_run_ended(state: RunState, code: ExitCode) -> None:
    """0 for completed, 3 for everything that is less."""
    assert judge(msgspec.structs.replace(SUMMARY, state=state)) == code


def test_an_account_that_does_not_balance_has_a_code_of_its_own() -> None:
    """Whatever the state."""
    flag = Validity(flag=Flag.UNBALANCED, detail="", requests=1)

    assert judge(msgspec.structs.replace(SUMMARY, validity=[flag])) == ExitCode.UNBALANCED


def test_json_goes_to_the_file(tmp_path: Path) -> None:
    """As it came from the coordinator."""
    write_json(str(tmp_path / "s.json"), SUMMARY)

    assert json.loads((tmp_path / "s.json").read_text()) == msgspec.to_builtins(SUMMARY)


def test_a_file_that_cannot_be_written_is_found_out_before_the_run(tmp_path: Path) -> None:
    """A folder, or a file in a folder that is not there."""
    for name in (str(tmp_path), str(tmp_path / "no" / "s.json")):
        with pytest.raises(UserError, match="is no file that can be written"):
            Watch(name, quiet=False).check()
    Watch(str(tmp_path / "s.json"), quiet=False).check()
    Watch("-", quiet=False).check()
    Watch(None, quiet=False).check()


def test_people_read_standard_error_when_json_goes_to_standard_output() -> None:
    """The two never mix."""
    assert Watch("-", quiet=False).build_console().stderr
    assert not Watch("x", quiet=False).build_console().stderr


def test_a_hint_names_the_command_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """`./task` says how in the environment."""
    monkeypatch.delenv("OKU_COMMAND", raising=False)
    assert build_hint("resume", "r") == "oku resume r"
    monkeypatch.setenv("OKU_COMMAND", "./task oku")
    assert build_hint("resume", "r") == "./task oku resume r"


@pytest.mark.parametrize("error", [UnreachableError("no answer"), InterruptedAtOnceError()])
def test_what_cuts_a_command_short_is_one_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    """With exit code 3."""

    async def fail() -> ExitCode:
        await asyncio.sleep(0)
        raise error

    assert run_async(fail()) == ExitCode.CUT_SHORT
    assert capsys.readouterr().err == f"oku: {error}\n"
