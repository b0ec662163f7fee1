"""What is said of the freeze in the section of the benchmark `rates`: who reports it."""

from collections.abc import Iterator

from oku_benchmarks.cases.freeze import DELAY_MS, OKU_SEND, PICTURE, FrozenTurn, Results
from oku_benchmarks.sections.section import NONE, Goal, build_table, fill_text
from oku_benchmarks.turns.paced_turn import Distribution

_NEAR = 0.1
_VISIBLE = 0.5
_TEXT = """\
{rate:,} requests/s for {run_s} s, and at most {connections} in flight. The target answers after {delay:g} ms;
after {at:g} s it answers nothing for {length:g} s. Whoever had asked at the planned times would have waited
{p50:,.0f} ms in the median, {p99:,.0f} ms at the p99 and {max:,.0f} ms at most. What each tool reports of it:

{table}

*Stall* is whether the p99 shows at least half of what the planned requests would have waited for. Most tools
time a request from when it was sent, and the connections were all taken: {connections} requests waited, the
rest of the freeze was never asked for, or asked for afterwards, when all was well again. That is called
coordinated omission. wrk2 times from the plan, and oha does when it is told to; k6 says how many it
did not send. *No cap* is what Oku and vegeta do unless they are told how much may be in flight: Oku allows a
rate what it sends in 2 s, vegeta any number. Then no request waits for room, and the latency itself has the
stall. wrk2 looks at no latency in its first ten seconds. h2load prints no percentile.

Oku says three things and never one for the other: *latency*, from sent to answered, is what the target took;
*response time*, from due to answered, is what a user would have waited; *lateness*, from due to sent, is what
the load generator, or its cap, added. By default, what could not be sent within a second is `not_sent` and
counted by cause; with `--late send`, everything is sent. {occasion}

![Latency, response time and lateness around the freeze](benchmarks/{picture})
"""


def build_freeze_text(results: Results, connections: int) -> str:
    """Table, picture and what they say."""
    freeze, truth = results.freeze, results.truth
    header = ["", "requests", "said to be left out", "p50, ms", "p99, ms", "max, ms", "stall"]
    rows = [row for turn in results.turns for row in _build_rows(turn, results)]
    return fill_text(
        _TEXT,
        rate=freeze.rate,
        run_s=freeze.run_s,
        connections=connections,
        delay=DELAY_MS,
        at=freeze.at_s,
        length=freeze.for_s,
        p50=truth.p50_ms,
        p99=truth.p99_ms,
        max=truth.max_ms,
        table=build_table(header, rows),
        picture=PICTURE,
        occasion=results.occasion.describe(),
    )


def build_freeze_goals(results: Results) -> Iterator[Goal]:
    """Oku's response time is what the planned requests would have waited for."""
    assert results.truth.p99_ms is not None
    for turn in results.turns:
        if turn.contestant != OKU_SEND or turn.response_time is None:
            continue
        said = turn.response_time.p99_ms or 0.0
        yield Goal(
            text=f"a freeze of {results.freeze.for_s:g} s, {OKU_SEND}: p99 of the response time within"
            f" {_NEAR:.0%} of {results.truth.p99_ms:,.0f} ms",
            result=f"{said:,.0f} ms",
            is_met=abs(said - results.truth.p99_ms) <= _NEAR * results.truth.p99_ms,
        )


def _build_rows(turn: FrozenTurn, results: Results) -> Iterator[list[str]]:
    reported = turn.reported
    latency = Distribution(p50_ms=reported.p50_ms, p99_ms=reported.p99_ms, max_ms=reported.max_ms)
    left_out = NONE if reported.left_out is None else f"{reported.left_out:,}"
    counts = [f"{turn.arrived:,}", left_out]
    if turn.response_time is None or turn.lateness is None:
        yield [turn.contestant, *counts, *_describe(latency, results)]
        return
    yield [f"{turn.contestant}: latency", *counts, *_describe(latency, results)]
    yield [f"{turn.contestant}: response time", "", "", *_describe(turn.response_time, results)]
    yield [f"{turn.contestant}: lateness", "", "", *_describe(turn.lateness, results)]


def _describe(said: Distribution, results: Results) -> list[str]:
    p99, truth = said.p99_ms, results.truth.p99_ms
    assert truth is not None
    figures = [
        NONE if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
        for value in (said.p50_ms, p99, said.max_ms)
    ]
    return [*figures, NONE if p99 is None else "yes" if p99 >= _VISIBLE * truth else "no"]
