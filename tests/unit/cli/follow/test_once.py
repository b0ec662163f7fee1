import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.kit.runs.begun_run import build_begun

from oku_cli.backends.client import ConflictError, Submitted
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.exit_code import ExitCode
from oku_cli.follow import outage, run_start
from oku_cli.follow.run_start import KeyNotice, finish_deleted, submit_once
from oku_cli.follow.watch import Watch
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.summary.summary import Summary

MakeSummary = Callable[..., Summary]


class Coordinator:
    """Answers with what a test gives it, in turn; an exception is raised."""

    def __init__(
        self,
        *,
        submitted: Sequence[object],
        resumed: Sequence[object] = (),
        summaries: Sequence[object] = (),
    ) -> None:
        self._answers: dict[str, Iterator[object]] = {
            "submit": iter(submitted),
            "resume": iter(resumed),
            "summary": iter(summaries),
        }
        self.calls: list[str] = []

    async def submit_once(self, values: object, _: object, key: str) -> Any:
        """Take a spec with its key."""
        assert (values, key) == ({"requests": 5}, "k1")
        return self._answer("submit")

    async def resume(self, run: str) -> Any:
        """Resume a run."""
        assert run == "r1"
        return self._answer("resume")

    async def fetch_summary(self, _: str) -> Any:
        """How the run stands."""
        return self._answer("summary")

    def _answer(self, call: str) -> object:
        self.calls.append(call)
        answer = next(self._answers[call])
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, which take no time."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    for module in (run_start, outage):
        monkeypatch.setattr(module, "sleep", pause)
    return made


async def begin(**answers: Sequence[object]) -> tuple[str, list[str]]:
    """Begin a run; gives its id, and the calls that were made for it."""
    coordinator: Any = Coordinator(**answers)
    begun = await submit_once(coordinator, {"requests": 5}, (), "k1", KeyNotice("k1"))
    return begun.run, coordinator.calls


async def test_what_is_done_with_a_run_depends_on_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    """Only one that is paused is resumed; whatever else it does, or has done, is left alone."""
    assert await begin(submitted=[Submitted(build_begun(), is_new=True)]) == (
        "r1",
        ["submit"],
    )
    assert capsys.readouterr().err == ""
    for state in RunState:
        is_paused = state in (RunState.PAUSED, RunState.PAUSING)
        calls = ["submit", "resume"] if is_paused else ["submit"]
        submitted = [Submitted(build_begun(state), is_new=False)]
        assert await begin(submitted=submitted, resumed=[RunState.PENDING]) == ("r1", calls), state
        assert capsys.readouterr().err == f"run r1 has the key k1 and is {state}\n"


async def test_a_run_that_is_being_paused_is_resumed_once_it_is(make_summary: MakeSummary) -> None:
    """The pod of a job may be replaced meanwhile; if another command resumed or ended the run, it is left
    alone.
    """
    not_yet = ConflictError("run r1 is pausing, it cannot become pending")
    _, calls = await begin(
        submitted=[Submitted(build_begun(RunState.PAUSING), is_new=False)],
        resumed=[not_yet, not_yet, RunState.PENDING],
        summaries=[make_summary(state=RunState.PAUSING), make_summary(state=RunState.PAUSED)],
    )
    assert calls == ["submit", "resume", "summary", "resume", "summary", "resume"]
    for state in (RunState.RUNNING, RunState.COMPLETED, RunState.CANCELLED):
        _, calls = await begin(
            submitted=[Submitted(build_begun(RunState.PAUSED), is_new=False)],
            resumed=[ConflictError("it cannot become pending")],
            summaries=[make_summary(state=state)],
        )
        assert calls == ["submit", "resume", "summary"]


async def test_a_call_whose_answer_was_lost_is_repeated(
    pauses: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """With a key that is safe, whichever call it was; what is known of the run is said once."""
    gone = UnreachableError("no answer")
    run, calls = await begin(
        submitted=[
            gone,
            Submitted(build_begun(RunState.PAUSED), is_new=False),
            Submitted(build_begun(RunState.PAUSED), is_new=False),
        ],
        resumed=[gone, RunState.PENDING],
    )
    assert (run, calls) == ("r1", ["submit", "submit", "resume", "submit", "resume"])
    assert len(pauses) == 2
    assert capsys.readouterr().err.count("run r1 has the key k1 and is paused\n") == 1


async def test_a_coordinator_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with the reason of the last try; a refusal ends it at once."""
    monkeypatch.setattr(outage, "TRIES_S", -1.0)
    with pytest.raises(UnreachableError, match="no answer"):
        await begin(submitted=[UnreachableError("no answer")])
    with pytest.raises(UserError, match="another spec"):
        await begin(submitted=[UserError("another spec"), Submitted(build_begun(), is_new=True)])


def test_a_deleted_run_is_shown_as_it_ended(
    make_summary: MakeSummary, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its exit code and its files, and without a command to resume it."""
    file = tmp_path / "summary.json"
    page = tmp_path / "report.html"
    watch = Watch(as_json=True, summary_file=str(file), html_file=str(page))
    for state, code in ((RunState.COMPLETED, ExitCode.COMPLETED), (RunState.FAILED, ExitCode.CUT_SHORT)):
        summary = make_summary(state=state)
        ending = finish_deleted(summary, watch, "run r1, which has the key k1, was deleted")
        assert asyncio.run(ending) is code
        assert f"run {summary.run} was deleted" in page.read_text()
        output = capsys.readouterr()
        assert output.out.strip() == file.read_text().strip()
        assert output.err.startswith("run r1, which has the key k1, was deleted\n")
        assert "resume" not in output.err
    # A run that was deleted before its end has no verdict.
    watch = Watch(junit_file=str(tmp_path / "oku.xml"))
    reason = "run r1, which has the key k1, was deleted"
    code = asyncio.run(finish_deleted(make_summary(state=RunState.PAUSED), watch, reason))
    assert code is ExitCode.CUT_SHORT
    said = f"{reason} before its end; it is not sent again, another run needs another key"
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"oku: {said}\n")
    assert said in (tmp_path / "oku.xml").read_text()
