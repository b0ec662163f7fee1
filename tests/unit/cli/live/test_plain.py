import io
from collections.abc import Callable

from tests.kit.outcomes import make_counts

from oku_cli.live.plain import PlainView
from oku_cli.terminal.console import Terminal
from oku_core.accounting.run_state import RunState
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.tick import Tick
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

MakeTick = Callable[..., Tick]
AT = 1_769_965_512.0


class Written:
    """A plain view and the lines it wrote to a pipe of 80 columns."""

    def __init__(self) -> None:
        self._file = io.StringIO()
        self.view = PlainView(Terminal(file=self._file, width=80), clock=lambda: AT + 1)

    @property
    def lines(self) -> list[str]:
        """What was written so far."""
        return self._file.getvalue().splitlines()


def test_a_tick_is_one_line(make_tick: MakeTick) -> None:
    """It is not folded at the width of the console; problems, resends and the time left are named."""
    written = Written()
    for _ in range(3):
        written.view.show_tick(make_tick())
    (line,) = written.lines
    assert line == (
        "17:05:12 running 412,345/1,000,000 (41.2 %, 400,000 accounted) 16,340/s "
        "in flight 2,000 ok 412,345 (100 %) p50 1.70 ms p99 6.04 ms workers 2"
    )
    written = Written()
    for second in range(6):
        written.view.show_tick(
            make_tick(
                at=AT + second,
                outcomes_so_far=make_counts(412_000, timeout=340, connect_error=5),
                resent_at_most=1234,
            )
        )
    assert "ok 412,000 (99.92 %) timeout 340 connect_error 5 p50" in written.lines[-1]
    assert written.lines[-1].endswith("workers 2 resent at most 1,234 left 36 s")


def test_lines_come_every_five_seconds(make_tick: MakeTick) -> None:
    """But a new state, and a notice that was not there, are written at once."""
    written = Written()
    for second in range(13):
        written.view.show_tick(make_tick(at=AT + second + 0.2 * (second % 2)))
    assert [line[:8] for line in written.lines] == ["17:05:12", "17:05:17", "17:05:22"]
    written = Written()
    written.view.show_tick(make_tick(times={}))
    written.view.show_tick(make_tick(at=AT + 1, state=RunState.PAUSED, times={}))
    assert written.lines[1].startswith("17:05:13 paused 412,345/1,000,000")
    assert "p50 - p99 -" in written.lines[1]
    written = Written()
    for second, notices in enumerate((["a"], ["a"], ["a", "b"], ["b"], [], ["b"])):
        written.view.show_tick(make_tick(at=AT + second, notices=notices))
    told = [line for line in written.lines if "running" not in line]
    assert told == ["17:05:12 a", "17:05:14 b", "17:05:17 b"]


def test_the_title_and_the_log_are_written_at_once_as_they_are() -> None:
    """A log line has the time of the clock, is not folded, and its brackets are not markup."""
    written = Written()
    line = "worker-1 died (signal 9), started again [bold] :boom: " + "x" * 80
    written.view.start("run 6f2c1a")
    written.view.log(line)
    written.view.stop()
    assert written.lines == ["17:05:13 run 6f2c1a", f"17:05:13 {line}"]


def test_a_threshold_is_told_once_when_it_is_decided(make_tick: MakeTick) -> None:
    """What is not certain yet is told at the end of the run."""
    written = Written()
    for verdict in (ThresholdVerdict.UNDECIDED, ThresholdVerdict.FAILED, ThresholdVerdict.FAILED):
        threshold = ThresholdSummary(
            expression="ok >= 99%", verdict=verdict, value=0.5, limit=0.99, unit=FigureUnit.SHARE, holds=False
        )
        written.view.show_tick(make_tick(thresholds=[threshold]))
    assert written.lines[1:] == ["17:05:12 threshold failed: ok >= 99% (50.00 %)"]
