import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.follow.watch import OutputLostError, Watch
from oku_core.errors import UserError


def test_a_file_that_cannot_be_written_is_found_out_before_the_run(tmp_path: Path) -> None:
    """JSON as it came from the coordinator, JUnit XML, Markdown and HTML; - is not a file."""
    names = "s.json", "s.xml", "s.md"
    files = [str(tmp_path / name) for name in names]
    watch = Watch(summary_file=files[0], junit_file=files[1], markdown_file=files[2])
    watch.check()
    asyncio.run(watch.write_files(build_threshold_run()))
    assert [(tmp_path / name).read_bytes()[:2] for name in names] == [b"{\n", b"<?", b"##"]
    assert json.loads((tmp_path / "s.json").read_text()) == msgspec.to_builtins(build_threshold_run())
    for wrong in (
        Watch(junit_file=str(tmp_path)), Watch(markdown_file="-"), Watch(html_file="no/s.html"),
        Watch(summary_file=str(tmp_path)), Watch(summary_file=str(tmp_path / "no" / "s.json")),
    ):  # fmt: skip
        with pytest.raises(UserError, match=r"--[a-z-]*: .* is not a file that can be written"):
            wrong.check()
    with pytest.raises(UserError, match="--summary-json: - is not a file; --json prints the summary"):
        Watch(summary_file="-").check()
    Watch().check()


def test_people_read_standard_error_when_json_goes_to_standard_output() -> None:
    """The two streams never mix."""
    assert Watch(as_json=True).build_console().stderr
    assert not Watch(summary_file="x").build_console().stderr


def test_a_file_that_cannot_be_written_is_told_in_those_that_can(tmp_path: Path) -> None:
    """The exit code is 2 then, so no page is green, whichever file it was."""
    gone, xml, page = str(tmp_path / "gone" / "file"), tmp_path / "s.xml", tmp_path / "s.md"
    for key, flag in (
        ("summary_file", "--summary-json"),
        ("junit_file", "--junit"),
        ("markdown_file", "--summary-markdown"),
    ):
        files: dict[str, Any] = {
            "summary_file": tmp_path / "s.json",
            "junit_file": xml,
            "markdown_file": page,
        }
        said = f"{flag}: {gone}: No such file"
        with pytest.raises(OutputLostError, match=said):
            asyncio.run(Watch(**(files | {key: gone})).write_files(build_threshold_run()))
        if flag != "--junit":
            assert f'<error message="{said}' in xml.read_text(), flag
        if flag != "--summary-markdown":
            text = page.read_text().replace("\\", "")
            assert "Exit code 2:" in text, flag
            assert said in text, flag


class CutOff:
    """Histories that end too early, or whose coordinator is gone."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """Yield a line that is no history of the run."""
        if self._error is not None:
            raise self._error
        yield run.encode()


def test_a_report_that_cannot_be_written_is_told_in_the_other_files(tmp_path: Path) -> None:
    """The exit code is 2, whether its history or its file is at fault."""
    for histories, file, text in (
        (CutOff(), "s.html", "the run has no report, its history cannot be read"),
        (CutOff(UnreachableError("no answer")), "s.html", "s.html: no answer"),
    ):
        watch = Watch(html_file=str(tmp_path / file), junit_file=str(tmp_path / "s.xml"))
        with pytest.raises(OutputLostError, match=text):
            asyncio.run(watch.write_files(build_threshold_run(), histories))
        assert text in (tmp_path / "s.xml").read_text()


def test_a_command_without_a_summary_leaves_no_file_of_an_earlier_run(tmp_path: Path) -> None:
    """A coordinator that cannot be reached, a second Ctrl-C, a mistake: the files say so."""
    xml, page, report = tmp_path / "s.xml", tmp_path / "s.md", tmp_path / "s.html"
    watch = Watch(junit_file=str(xml), markdown_file=str(page), html_file=str(report))

    async def fail() -> ExitCode:
        await asyncio.sleep(0)
        raise UnreachableError("no answer")

    def mistake() -> None:
        with watch.explaining_mistakes():
            raise UserError("no answer")

    for code, end in (
        (ExitCode.CUT_SHORT, lambda: run_async(fail(), watch)),
        (ExitCode.WRONG_INPUT, mistake),
    ):
        asyncio.run(watch.write_files(build_threshold_run()))
        with suppress(UserError):
            end()
        assert 'errors="1"' in xml.read_text()
        assert "no answer" in xml.read_text()
        assert page.read_text() == f"## unfinished\n\nExit code {code:d}:\n\n- **no answer**\n"
        assert "no answer" in report.read_text()
