"""How a command follows a run: its screen, the files that it writes at the end, and what SIGTERM does."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.exit_code import ExitCode
from oku_cli.process.interrupt import SignalAction
from oku_cli.process.standard_streams import find_lost_output
from oku_cli.terminal.json_output import build_json
from oku_cli.terminal.printable import write_error
from oku_cli.views.dashboard_link import build_summary_link
from oku_cli.views.exit_reasons import ExitReason
from oku_core.errors import UserError
from oku_core.summary.summary import Summary

if TYPE_CHECKING:
    from oku_cli.comparison.run_seconds import Histories
    from oku_cli.terminal.console import Terminal


class OutputLostError(UserError):
    """A file could not be written; the run is over, and in the ledger."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """How a run is shown, where its summary goes, and the effect of SIGTERM meanwhile.

    Args:
        as_json: whether the summary is printed as JSON and everything else goes to standard error.
        quiet: whether no progress is shown.
        grafana: the Grafana in which its dashboard is seen; None for none.
    """

    as_json: bool = False
    summary_file: str | None = None
    junit_file: str | None = None
    markdown_file: str | None = None
    html_file: str | None = None
    allows_undecided: bool = False
    quiet: bool = False
    grafana: str | None = None
    on_sigterm: SignalAction = SignalAction.PAUSE

    def check(self) -> None:
        """Raise `UserError` before the run if a file cannot be written."""
        if self.summary_file == "-":
            raise UserError("--summary-json: - is not a file; --json prints the summary to standard output")
        for flag, file in self._list_files().items():
            path = Path(file)
            if file == "-" or path.is_dir() or not path.absolute().parent.is_dir():
                raise UserError(f"{flag}: {path} is not a file that can be written")

    async def write_files(self, summary: Summary, histories: "Histories | None" = None) -> None:
        """Write the summary, and the report from the history of the run, to the requested files.

        There are no histories if the history of the run was deleted; the report then contains only that.

        Raises:
            OutputLostError: one could not be written; the others mention it, too.
        """
        lost = [*filter(None, [find_lost_output()])]
        failed = [*await self._write_report(summary.run, histories)]
        failed += self._try_to_write(self._build_files(summary, [*lost, *failed]))
        if failed:
            list(self._try_to_write(self._build_files(summary, [*lost, *failed])))
            raise OutputLostError(failed[0])

    async def _write_report(self, run: str, histories: "Histories | None") -> Sequence[str]:
        """Write the report, if it was asked for; returns why it could not be written, if so."""
        if self.html_file is None:
            return []
        # A report loads all charts.
        from oku_cli.report.output_files import OutputFile, ReportWriter  # noqa: PLC0415
        from oku_cli.report.page import build_page, build_unfinished_page  # noqa: PLC0415

        if histories is None:
            return list(self._try_to_write({"--html": build_unfinished_page(f"run {run} was deleted")}))
        try:
            with ReportWriter([OutputFile("--html", self.html_file, build_page)]) as writer:
                async for line in histories.read_run_history(run):
                    writer.write_line(line)
                writer.finish()
        except UserError as error:
            return [str(error)]
        except UnreachableError as error:
            return [f"--html: {self.html_file}: {error}"]
        return []

    def write_reason(self, code: ExitCode, text: str) -> None:
        """Write why the command ends without a summary, so that no file of an earlier run is taken for it."""
        from oku_cli.views.junit import build_unfinished_junit  # noqa: PLC0415  # few runs need it
        from oku_cli.views.summary_markdown import build_unfinished_markdown  # noqa: PLC0415  # as this

        reason = ExitReason(code, text)
        builders = {"--junit": build_unfinished_junit, "--summary-markdown": build_unfinished_markdown}
        contents = {flag: build(reason) for flag, build in builders.items()}
        if self.html_file is not None:
            from oku_cli.report.page import build_unfinished_page  # noqa: PLC0415  # loads all charts

            contents["--html"] = build_unfinished_page(text)
        for problem in self._try_to_write(contents):
            write_error(problem)

    @contextmanager
    def explaining_mistakes(self) -> Iterator[None]:
        """Have a `UserError` that ends the command written as the reason, too."""
        try:
            yield
        except OutputLostError:
            raise
        except UserError as error:
            self.write_reason(ExitCode.WRONG_INPUT, str(error))
            raise

    def _list_files(self) -> dict[str, str]:
        """The path of each file that was asked for, by its flag."""
        files = {
            "--summary-json": self.summary_file,
            "--junit": self.junit_file,
            "--summary-markdown": self.markdown_file,
            "--html": self.html_file,
        }
        return {flag: file for flag, file in files.items() if file is not None}

    def _build_files(self, summary: Summary, lost: Sequence[str]) -> dict[str, bytes]:
        """The content of each file of the summary by its flag, with a note on lost output."""
        from oku_cli.views.junit import build_junit  # noqa: PLC0415  # few runs need it
        from oku_cli.views.summary_markdown import build_markdown  # noqa: PLC0415  # as this

        allows = self.allows_undecided
        builders: dict[str, Callable[[], bytes]] = {
            "--summary-json": lambda: build_json(summary),
            "--junit": lambda: build_junit(summary, allows_undecided=allows, lost_output=lost),
            "--summary-markdown": lambda: build_markdown(summary, allows_undecided=allows, lost_output=lost),
        }
        return {flag: builders[flag]() for flag in self._list_files() if flag in builders}

    def _try_to_write(self, contents: Mapping[str, bytes]) -> Iterator[str]:
        """Write the files that were asked for, by their flags; gives why those failed that did."""
        for flag, file in self._list_files().items():
            if flag in contents:
                try:
                    Path(file).write_bytes(contents[flag])
                except OSError as error:
                    yield f"{flag}: {file}: {error.strerror}"

    def build_console(self) -> "Terminal":
        """Build a console on standard output, or on standard error if the JSON goes to standard output."""
        from oku_cli.terminal.console import Terminal  # noqa: PLC0415  # rich takes long to load

        return Terminal(stderr=self.as_json)

    def print_dashboard_link(self, summary: Summary) -> None:
        """Print the address of the run's dashboard, if there is a Grafana and it may be shown."""
        if self.grafana is not None and not self.quiet:
            link = build_summary_link(self.grafana, summary, time.time())
            # Aligned with the end screen, and in one piece, so that a terminal can open it.
            console = self.build_console()
            console.print(f" dashboard   {link}", soft_wrap=True)
            console.print()
