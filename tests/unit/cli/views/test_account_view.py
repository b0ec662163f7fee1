from collections.abc import Callable

import pytest
from tests.kit.runs.summaries import make_outcomes

from oku_cli.terminal.console import BAD
from oku_cli.views.account_view import (
    build_headline,
    build_hooks,
    build_planned,
    build_served,
    build_status_counts,
    build_validity_rows,
    describe_hook,
)
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import OPEN_END, Hook
from oku_core.summary.plan_check import PlanSummary
from oku_core.summary.request_summary import OutcomeCounts
from oku_core.summary.summary import HookState, HookSummary, ServersSummary, Summary
from oku_core.summary.validity import Flag, Validity

MakeSummary = Callable[..., Summary]
Render = Callable[..., list[str]]
OUTCOMES = OutcomeCounts(
    ok=996, unexpected_status=0, timeout=3, connect_error=1, disconnected=0, protocol_error=0
)


def test_the_headline_names_the_run_its_state_and_its_account(
    make_summary: MakeSummary, render: Render
) -> None:
    """The first line says whether every request is accounted."""
    lines = [" ".join(line.split()) for line in render(build_headline(make_summary(), None))]
    assert lines == ["run 6f2c1a · soak · aiohttp completed · 100 % ok", "1,000 of 1,000 accounted"]
    # The headline names target and load. They stand between the run and its account.
    summary = make_summary(target="http://h/{i}", load="5/s for 200 s")
    assert render(build_headline(summary, None))[1].rstrip() == "http://h/{i} · 5/s for 200 s"
    # Why the engine is not the fastest stands behind the load.
    summary = make_summary(load="5/s for 200 s", engine_reason="needs a proxy")
    assert render(build_headline(summary, None))[1].rstrip() == "5/s for 200 s · aiohttp: needs a proxy"
    # What does not fit into one line has two. Nothing is left hanging between them.
    summary = make_summary(target=f"http://h/{'x' * 60}", load="5/s for 200 s")
    lines = [line.rstrip() for line in render(build_headline(summary, None), 70)]
    assert lines[1:3] == [f"http://h/{'x' * 60}", "5/s for 200 s"]


def test_what_the_servers_counted_is_compared_with_the_account(make_summary: MakeSummary) -> None:
    """Resent requests and lost ones explain a difference; what nothing explains is marked."""
    for served, words, is_bad in [
        (1000, "1,000 = accounted", False),
        (1040, "1,040 = accounted + 40 of those resent", False),
        (997, "997 = accounted - 3 of those without a response", False),
        (1041, "1,041, 41 more than accounted", True),
        (995, "995, fewer than the 996 that are ok", True),
    ]:
        summary = make_summary(outcomes=OUTCOMES, resent_at_most=40)
        text = build_served(summary, ServersSummary(served=served))
        assert text.plain == words
        assert (BAD in {span.style for span in text.spans}) is is_bad
    for served, words in [
        (900, "900 = sent"),
        (910, "910 = sent + 10 of those resent"),
        (890, "890 = sent - 10 of those without a response"),
        (921, "921, 21 more than sent"),
    ]:
        # The servers see no request that was not sent.
        summary = make_summary(
            outcomes=make_outcomes(ok=880, timeout=20, not_sent=80, lost=20), resent_at_most=20
        )
        assert build_served(summary, ServersSummary(served=served)).plain == words


def test_what_a_run_waits_for_stands_below_its_account(make_summary: MakeSummary, render: Render) -> None:
    """Each has a line of its own."""
    summary = make_summary(state=RunState.PENDING, accounted=0, notices=["waiting for [1]", "Loki: 503"])
    lines = [line.rstrip() for line in render(build_headline(summary, None))]
    assert lines[1:] == ["0 of 1,000 accounted, 0.0 %; 1,000 are left", "waiting for [1]", "Loki: 503"]
    # Nothing is left of a run that only waits for its teardown.
    lines = render(build_headline(make_summary(state=RunState.TEARING_DOWN, name=""), None))
    assert lines[1].rstrip() == "1,000 of 1,000 accounted"
    # A run that is not complete says how far it came. The hint on how to resume stands below.
    for state, rest in [
        (RunState.PAUSED, "412 of 1,000 accounted, 41.2 %; 588 are left"),
        (RunState.RUNNING, "412 of 1,000 accounted, 41.2 %; 588 are left"),
        (RunState.CANCELLED, "412 of 1,000 accounted, 41.2 %; 588 were not made"),
        (RunState.FAILED, "412 of 1,000 accounted, 41.2 %; 588 were not made"),
        (RunState.TEARING_DOWN, "412 of 1,000 accounted, 41.2 %; 588 were not made"),
    ]:
        summary = make_summary(state=state, accounted=412, outcomes=make_outcomes(ok=412), name="")
        lines = render(build_headline(summary, "Resume it with: oku resume 6f2c1a"))
        assert [lines[1].rstrip(), lines[-1].rstrip()] == [rest, "Resume it with: oku resume 6f2c1a"]
        assert lines[0].split() == ["run", "6f2c1a", "·", "aiohttp", state, "·", "100", "%", "ok"]
    for state, words in [
        (RunState.PAUSED, "its time is not up"),
        (RunState.CANCELLED, "its time was not up"),
    ]:
        # A run that a time ends has no total before. Nobody knows how many requests it would have made.
        lines = render(build_headline(make_summary(requests=OPEN_END, accounted=412, state=state), None))
        assert lines[1].rstrip() == f"412 accounted, {words}"
    # Statuses are in order. The count of each is shown.
    (line,) = render(build_status_counts({"503": 2000, "200": 41_000}))
    assert line.split() == ["200", "41,000", "503", "2,000"]


def test_the_plan_says_how_much_of_it_was_sent(make_summary: MakeSummary, render: Render) -> None:
    """What was sent and not answered was sent all the same."""
    for outcomes, words in [
        (make_outcomes(ok=900, timeout=100), "500/s; 100 % of what was due was sent"),
        (make_outcomes(ok=900, not_sent=80, lost=20), "500/s; 90.00 % of what was due was sent"),
    ]:
        assert render(build_planned(make_summary(outcomes=outcomes), 500.0))[0].rstrip() == words
    # The plan says how many seconds went as planned. As far as seconds could be compared.
    plan = PlanSummary(seconds=1200, off_seconds=3, off_share=0.0025, missed=9, causes=[])
    [line] = render(build_planned(make_summary(plan=plan), 500.0))
    assert line.rstrip() == "500/s; 100 % of what was due was sent, 1,197 of 1,200 seconds as planned"
    none = PlanSummary(seconds=0, off_seconds=0, off_share=0.0, missed=0, causes=[])
    [line] = render(build_planned(make_summary(plan=none), 500.0))
    assert line.rstrip() == "500/s; 100 % of what was due was sent"


def test_a_hook_is_told_in_a_line() -> None:
    """With how long it took, and how often it was called if that was more than once."""
    for state, calls, took_s, text in [
        (HookState.DONE, 1, 1.25, "setup took 1.2 s"),
        (HookState.DONE, 2, 0.5, "setup took 500 ms, called 2 times"),
        (HookState.FAILED, 1, 3.0, "setup failed after 3.0 s"),
        (HookState.BEGUN, 1, None, "setup is being called"),
        (HookState.LOST, 2, None, "setup is to be called again, called 2 times"),
        (HookState.OWED, 0, None, "setup is to be called"),
        (HookState.GIVEN_UP, 1, None, "setup was given up"),
    ]:
        hook = HookSummary(hook=Hook.SETUP, state=state, calls=calls, worker="w1", took_s=took_s)
        assert describe_hook(hook) == text
    # The traceback of a failed hook is shown without what a terminal obeys. User code may raise anything.
    hook = HookSummary(
        hook=Hook.SETUP,
        state=HookState.FAILED,
        calls=1,
        worker="w1",
        took_s=0.0,
        traceback="Traceback (most recent call last):\nValueError: \x1b[31mred\n",
    )
    lines = [str(line) for line in build_hooks([hook])]
    assert len(lines) == 3
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("flag", list(Flag))
def test_a_flag_says_what_it_is_and_whom_it_concerns(flag: Flag, render: Callable[..., list[str]]) -> None:
    """The row has its name as in the JSON summary, the number of requests, and its meaning."""
    validity = Validity(flag=flag, detail="a worker's loop was up to 200 ms late", requests=12_000)
    (line,) = render(build_validity_rows([validity]))
    words = f"! {flag.replace('_', ' ')} 12,000 requests: a worker's loop was up to 200 ms late"
    assert line.split() == words.split()


def test_a_long_detail_is_folded_under_itself(render: Callable[..., list[str]]) -> None:
    """None of it is cut."""
    detail = "latencies include the queueing of the worker " * 3
    lines = render(build_validity_rows([Validity(flag=Flag.LOOP_LAG, detail=detail, requests=1)]), 66)
    assert " ".join(" ".join(lines).split()) == f"! loop lag 1 request: {detail}".strip()
    assert all(line.startswith(" " * len("! loop lag   ")) for line in lines[1:])
    # The share of the requests is said. It tells the reader whether the flag matters.
    flag = Validity(flag=Flag.LOOP_LAG, detail="late", requests=1234, share=0.1234)
    assert "1,234 requests, 12.34 %: late" in "".join(render(build_validity_rows([flag])))
