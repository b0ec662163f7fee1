import io
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from rich.console import Group, RenderableType
from tests.kit.histograms import make_histogram
from tests.kit.runs.compared import MakeRun
from tests.kit.runs.summaries import build_summary as make_failed
from tests.kit.runs.summaries import make_outcomes

from oku_cli.terminal.console import Terminal
from oku_cli.views.summary_view import (
    MOST_SHOWN,
    build_completes,
    build_reason_list,
    build_screen,
    list_distributions,
    print_summary,
)
from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import RunState
from oku_core.summary.latency_summary import LatencySummary, build_latency_summary
from oku_core.summary.request_summary import FailureSummary, NotSentCounts, OutcomeCounts, PhaseSummary
from oku_core.summary.summary import CompletesSummary, Summary, WorkerSummary
from oku_core.summary.validity import Flag, Validity

MakeSummary = Callable[..., Summary]
Render = Callable[..., list[str]]
NONE = OutcomeCounts(ok=0, unexpected_status=0, timeout=0, connect_error=0, disconnected=0, protocol_error=0)


def test_the_histogram_has_the_exact_ends(make_summary: MakeSummary, render: Render) -> None:
    """The exchange format has them only within its error; the summary has them exactly."""
    histogram = Histogram()
    histogram.record(1_000_300)
    histogram.record(1_900_300)
    lines = [line.split() for line in render(build_screen(make_summary(histogram))) if " to " in line]
    assert lines[0][:2] == ["1.00", "s"]
    assert lines[-1][3:5] == ["1.90", "s"]


def test_the_end_screen_tells_the_account_and_the_statistics(
    make_summary: MakeSummary, render: Render
) -> None:
    """All of them are there, in this order, beside the histogram."""
    lines = [" ".join(line.split()) for line in render(build_screen(make_summary(load="16/s for 1 min 2 s")))]
    assert [line for line in lines if line and " to " not in line] == [
        "run 6f2c1a · soak · aiohttp completed · 100 % ok",
        "16/s for 1 min 2 s",
        "1,000 of 1,000 accounted",
        "outcomes ok 1,000 100 %",
        "statuses 200 1,000",
        "resent at most 0",
        "served 1,000 = accounted",
        "latency min 1.00 ms p50 5.99 ms p95 10.5 ms p99.9 11.0 ms",
        "mean 6.00 ms p90 9.99 ms p99 10.9 ms max 11.0 ms",
        "throughput 16/s over 61.2 s",
        "received 13.0 kB",
        "started 2026-02-01 17:05:12, ended 2026-02-01 17:06:13",
        "workers 2 workers, none lost",
        "worker requests rate CPU peak memory",
        "worker-1 500 8.2/s 58.1 s 61 MB",
        "worker-2 500 8.2/s 58.1 s 61 MB",
    ]
    assert 10 <= sum(" to " in line for line in lines) <= 14
    assert len(lines) <= 40
    # A run without an answer has no latencies.
    summary = make_summary(
        Histogram(),
        state=RunState.FAILED,
        accounted=0,
        outcomes=NONE,
        statuses={},
        bytes_received=0,
        started_at=None,
        ended_at=None,
        active_s=0.0,
        throughput_rps=0.0,
        workers=[],
        servers=None,
    )
    lines = [" ".join(line.split()) for line in render(build_screen(summary))]
    assert [line for line in lines if line] == [
        "run 6f2c1a · soak · aiohttp failed",
        "0 of 1,000 accounted, 0.0 %; 1,000 were not made",
        "outcomes ok 0 0 %",
        "resent at most 0",
        "latency nothing was answered",
        "received 0 B",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_a_hundred_million_requests_fit(make_summary: MakeSummary, render: Render, width: int) -> None:
    """With two workers, every outcome and three flags, no line is too wide and no number cut."""
    few, histogram = Histogram(), Histogram()
    for i in range(1000):
        few.record(round(300 * 1.012**i))
    histogram.add(
        msgspec.structs.replace(
            few.build_latency(),
            buckets=[number for index, count in few.filled() for number in (index, count * 100_000)],
            sum_us=few.sum_us * 100_000,
        )
    )
    summary = make_summary(
        histogram,
        requests=100_000_000,
        accounted=100_000_000,
        resent_at_most=1_234_567,
        outcomes=OutcomeCounts(
            ok=93_827_160,
            unexpected_status=1_234_567,
            timeout=1_234_567,
            connect_error=1_234_567,
            disconnected=1_234_567,
            protocol_error=1_234_572,
        ),
        statuses={"200": 93_827_160, "503": 1_234_567},
        workers=[
            WorkerSummary(
                name=f"worker-{i}", requests=50_000_000, cpu_s=6000.0, peak_rss_mb=1234.0, lost=i == 1
            )
            for i in (1, 2)
        ],
        validity=[Validity(flag=flag, requests=1_234_567, detail="short") for flag in list(Flag)[:3]],
    )
    lines = render(build_screen(summary), width)
    assert max(len(line) for line in lines) <= min(width, 100)
    assert len(lines) <= 45
    assert "…" not in "\n".join(lines)
    assert "100,000,000 of 100,000,000 accounted" in lines[2]


def test_the_end_screen_goes_to_the_console_it_is_given(
    make_summary: MakeSummary, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output stays free for JSON."""
    file = io.StringIO()
    print_summary(Terminal(file=file, width=80), make_summary(), hint="Look at it with: oku show 6f2c1a")
    assert "run 6f2c1a" in file.getvalue()
    assert "oku show 6f2c1a" in file.getvalue()
    assert capsys.readouterr().out == ""


def test_a_paused_run_says_how_to_go_on(make_summary: MakeSummary, render: Render) -> None:
    """The hint stands under how far it came; it has begun and not ended."""
    summary = make_summary(state=RunState.PAUSED, requests=2000, ended_at=None)
    lines = [line.strip() for line in render(build_screen(summary, hint="Resume it with: oku resume 6f2c1a"))]
    assert lines[2:5] == [
        "1,000 of 2,000 accounted, 50.0 %; 1,000 are left",
        "it is paused: nothing is in flight; what is accounted is kept",
        "Resume it with: oku resume 6f2c1a",
    ]
    assert "started     2026-02-01 17:05:12" in lines
    # A killed run says what happened. The reason is in words, not the ledger's name for it.
    summary = make_summary(state=RunState.PAUSED, reason="stack_lost", requests=2000, ended_at=None)
    text = "\n".join(render(build_screen(summary)))
    assert "it was interrupted: its processes were killed; what is accounted is kept" in text
    assert "stack_lost" not in text
    # Flags are shown as notes. A number that may mislead is marked.
    validity = [Validity(flag=Flag.LOOP_LAG, detail="the loop was 200 ms late", requests=12)]
    screen = "\n".join(render(build_screen(make_summary(validity=validity))))
    assert "! loop lag   12 requests: the loop was 200 ms late" in screen


def test_a_run_with_a_rate_shows_its_plan_its_phases_and_what_the_warm_up_is_not_in(
    make_summary: MakeSummary, render: Render
) -> None:
    """The rate is over the time after the warm-up."""
    phases = [
        PhaseSummary(
            name=name, begin_s=begin_s, end_s=end_s, requests=500, outcomes=make_outcomes(ok=500),
            not_sent=NotSentCounts(), statuses={"200": 500}, bytes_received=0, due=520, completed=500,
            sent_rps=16.0, completed_rps=14.0, planned_rps=16.5, latency_ms=LatencySummary(),
            response_time_ms=LatencySummary(), lateness_ms=LatencySummary(),
        )
        for name, begin_s, end_s in (("warm-up", 0.0, 20.0), ("main", 20.0, 60.0))
    ]  # fmt: skip
    lines = [
        " ".join(line.split())
        for line in render(build_screen(make_summary(planned_rps=16.5, completed_rps=14.2, phases=phases)))
    ]
    at = next(number for number, line in enumerate(lines) if line.startswith("throughput"))
    assert " ".join(lines[at : at + 2]) == (
        "throughput 16/s sent, 14/s completed over 41.2 s after the warm-up,"
        " which all rates and times above leave out"
    )
    assert "planned 16/s; 100 % of what was due was sent" in lines
    assert [line.split()[0] for line in lines if "520 500 100 %" in line] == ["warm-up", "main"]


def test_a_long_wait_is_named(make_summary: MakeSummary, render: Render) -> None:
    """That for workers of this machine is not: every run has it."""
    texts = [
        " ".join(" ".join(render(build_screen(make_summary(queued_s=queued_s)))).split())
        for queued_s in (1.5, 754.0)
    ]
    assert "queued" not in texts[0]
    assert "queued for 12 min 34 s" in texts[1]


def build_failure(reason: str = "refused", **changes: object) -> FailureSummary:
    """A reason of some requests."""
    given: dict[str, Any] = {"requests": 1200, "first_index": 3, "last_index": 9000} | changes
    return FailureSummary(outcome=Outcome.CONNECT_ERROR, reason=reason, **given)


def show(failures: list[FailureSummary]) -> RenderableType:
    """What the end screen says of them."""
    return build_reason_list(make_failed(failures=failures))


def test_more_reasons_than_fit_are_counted(render: Render) -> None:
    """The summary as JSON has them all."""
    text = " ".join(render(show([build_failure(f"status {place}") for place in range(MOST_SHOWN + 2)])))
    assert f"status {MOST_SHOWN - 1}" in text
    assert f"status {MOST_SHOWN}" not in text
    assert "and 2 other reasons" in text
    # A certificate that is not trusted comes with the flags for it.
    advice = "--cacert trusts another issuer, --insecure any certificate"
    lines = render(show([build_failure("certificate not trusted: self-signed")]))
    assert lines[-1].strip() == advice
    assert not any(advice in line for line in render(show([build_failure("refused")])))


def test_a_retry_says_how_many_of_the_first_run_are_ok(render: Render) -> None:
    """What is left out is said, too."""
    completes = CompletesSummary(
        run="r1", retried="r2", requests=1000, ok=880, ok_with_retries=999, unlisted=7
    )
    text = " ".join(" ".join(render(build_completes(completes))).split())
    assert "run r1: 999 of 1,000 ok (99.90 %), 880 of them before" in text
    assert "7 that failed are left out" in text


def test_a_run_with_a_rate_has_three_distributions_and_the_bars_of_its_response_times(
    make_summary: MakeSummary, render: Render
) -> None:
    """The quantiles of all three stand in the same columns."""
    times = make_histogram([7_000, 9_000_300])
    summary = make_summary(
        planned_rps=10.0,
        response_time_ms=build_latency_summary(times),
        response_time_histogram=hdr.encode_base64(times),
        lateness_ms=build_latency_summary(make_histogram([40])),
    )
    rows = [(str(label), render(content)) for label, content in list_distributions(summary)]
    assert [label for label, _ in rows] == ["latency", "response time", "lateness", "", "response time"]
    assert len({lines[0].index("p50") for _, lines in rows[:3]}) == 1
    assert "9.00 s" in rows[-1][1][-1]


def test_a_closed_run_has_its_latencies_and_their_bars(make_summary: MakeSummary, render: Render) -> None:
    """Nothing in it has a due time."""
    rows = [(str(label), render(content)) for label, content in list_distributions(make_summary())]
    assert [label for label, _ in rows] == ["latency", "", ""]
    assert " to " in rows[-1][1][0]
    # A run that sent something but heard nothing has latenesses alone.
    summary = make_summary(
        Histogram(), planned_rps=10.0, lateness_ms=build_latency_summary(make_histogram([40]))
    )
    rows = [(str(label), render(content)) for label, content in list_distributions(summary)]
    assert [label for label, _ in rows] == ["latency", "lateness"]
    assert rows[0][1][0].strip() == "nothing was answered"
    # A run that ended within its warm up says so.
    none = LatencySummary()
    phase = PhaseSummary(
        name="warm-up", begin_s=0.0, end_s=5.0, requests=1000, outcomes=make_outcomes(ok=1000),
        not_sent=NotSentCounts(), statuses={"200": 1000}, bytes_received=0, completed=1000, sent_rps=900.0,
        completed_rps=900.0,
        latency_ms=none, response_time_ms=none, lateness_ms=none,
    )  # fmt: skip
    [(_, content)] = list_distributions(make_summary(Histogram(), phases=[phase]))
    assert render(content)[0].strip() == "nothing was answered after the warm-up"


def test_a_long_run_shows_intervals_once(make_run: MakeRun, render: Render) -> None:
    """Those of the median and of the 99th percentile; the JSON has the rest."""
    summary = make_run().build_intervals()
    lines = render(
        Group(*(content for label, content in list_distributions(summary) if label == "intervals"))
    )
    (line,) = (line for line in lines if line.strip())
    assert [word for word in line.split() if word in {"p50", "p99", "(95", "%)"}] == [
        "p50",
        "p99",
        "(95",
        "%)",
    ]
    assert "intervals" not in dict(list_distributions(make_run(seconds=20).build_intervals()))
