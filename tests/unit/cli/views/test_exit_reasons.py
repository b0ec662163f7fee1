import itertools
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import msgspec
import pytest
from msgspec.structs import replace
from tests.unit.cli.report.conftest import Page
from tests.unit.cli.views.threshold_run import build_threshold_run
from tests.unit.cli.views.user_code_run import build_user_code_run

from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import find_exit_code
from oku_cli.report.summary_sections import build_head
from oku_cli.views.account_view import build_headline
from oku_cli.views.exit_reasons import (
    describe_failure,
    describe_nothing_ok,
    describe_redirects,
    list_exit_reasons,
    list_hints,
)
from oku_cli.views.junit import build_junit
from oku_cli.views.summary_markdown import build_markdown
from oku_cli.views.summary_view import build_screen
from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import FINAL_STATES, REST_STATES, RunState
from oku_core.http_client.error_reason import NO_HTTP2
from oku_core.spec.spec import Engine
from oku_core.summary.request_summary import FailureSummary, OutcomeCounts
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag, Validity
from oku_core.thresholds.threshold_summary import ThresholdVerdict, sum_up

COUNTS = ((0, 0, 0), (0, 0, 5), (0, 5, 0), (3, 2, 0), (5, 0, 0))
"""How many requests were ok, how many timed out, and how many were not sent."""


def make_run(state: RunState, counts: tuple[int, int, int], verdict: ThresholdVerdict | None) -> Summary:
    """A run at rest with one threshold, or none, and the verdict that the coordinator gives to it."""
    run = build_threshold_run()
    ok, timeout, not_sent = counts
    thresholds = [each for each in run.thresholds if each.verdict is verdict]
    is_nothing_ok = state in FINAL_STATES and (sum(counts) > 0 or state is RunState.COMPLETED) and not ok
    return msgspec.structs.replace(
        run,
        state=state,
        requests=sum(counts),
        accounted=sum(counts),
        outcomes=OutcomeCounts(
            ok=ok, unexpected_status=0, timeout=timeout, connect_error=0, disconnected=0, protocol_error=0,
            not_sent=not_sent,
        ),
        thresholds=thresholds,
        verdict=sum_up([each.verdict for each in thresholds], is_nothing_ok=is_nothing_ok),
        validity=[],
    )  # fmt: skip


def iter_runs() -> Iterator[tuple[str, Summary, bool]]:
    """Every way in which a run may come to rest, with and without `--allow-undecided`."""
    unbalanced = Validity(flag=Flag.UNBALANCED, detail="1 is missing", requests=1)
    cases = itertools.product(
        sorted(REST_STATES), COUNTS, [None, *ThresholdVerdict], [[], [unbalanced]], [False, True]
    )
    for state, counts, verdict, flags, allows in cases:
        run = msgspec.structs.replace(make_run(state, counts, verdict), validity=flags)
        yield f"{state}, {counts}, {verdict}, {len(flags)} flags, {allows}", run, allows


def is_red(junit: bytes) -> bool:
    """Whether a page of tests is red."""
    suite = ET.fromstring(junit)[0]  # our own file
    return suite.get("failures") != "0" or suite.get("errors") != "0"


@pytest.mark.heavy
def test_every_output_agrees_with_the_exit_code() -> None:
    """JUnit is red, and Markdown has the reasons, exactly if it is not 0."""
    wrong = []
    for case, run, allows in iter_runs():
        code = find_exit_code(run, allows_undecided=allows)
        page = build_markdown(run, allows_undecided=allows).decode()
        if is_red(build_junit(run, allows_undecided=allows)) != bool(code):
            wrong.append(f"JUnit: {case}: {code}")
        if (f"Exit code {code:d}:" in page) != bool(code) or (": completed" in page and code):
            wrong.append(f"Markdown: {case}: {code}")
        if bool(list_exit_reasons(run, allows_undecided=allows)) != bool(code):
            wrong.append(f"reasons: {case}: {code}")
    assert wrong == []


def test_the_first_reason_is_that_of_the_exit_code() -> None:
    """Where several apply, all are listed: 4 before 1, and 1 before 3."""
    unbalanced = Validity(flag=Flag.UNBALANCED, detail="1 is missing", requests=1)
    run = msgspec.structs.replace(
        build_threshold_run(), validity=[unbalanced], state=RunState.CANCELLED, reason="why"
    )
    assert list_exit_reasons(run) == [
        (ExitCode.UNBALANCED, "the account does not balance: 1 is missing"),
        (ExitCode.NOT_PASSED, "the threshold p99 < 1s failed"),
        (ExitCode.NOT_PASSED, "the threshold rate > 1/s over 1m is undecided"),
        (ExitCode.CUT_SHORT, "the run is cancelled: why"),
    ]


def test_a_run_that_sent_nothing_says_so_everywhere(render: Callable[..., list[str]]) -> None:
    """It has no failure that could say why it has not passed."""
    texts = {
        (0, 0, 0): "no requests were sent",
        (0, 0, 5): "no requests were sent, and 5 were due",
        (0, 5, 0): "none of 5 accounted requests were ok",
        (3, 2, 0): "",
    }
    for counts, text in texts.items():
        run = make_run(RunState.COMPLETED, counts, None)
        assert describe_nothing_ok(run) == text
        assert text in Page(build_head(run)).text
        assert text in build_markdown(run).decode()
        assert text in build_junit(run).decode()
    screen = "\n".join(render(build_screen(make_run(RunState.COMPLETED, (0, 0, 0), None))))
    assert "no requests were sent" in screen


MakeSummary = Callable[..., Summary]
Render = Callable[..., list[str]]


def count(**given: int) -> OutcomeCounts:
    """Outcomes, none but these."""
    return OutcomeCounts(**{outcome.value: given.get(outcome.value, 0) for outcome in Outcome})


def test_advice_is_about_what_was_answered(make_summary: MakeSummary) -> None:
    """Scheme, host and port are right then; if most were refused, they are what to check."""
    untrusted, refused = (
        FailureSummary(outcome=Outcome.CONNECT_ERROR, reason=reason, requests=2)
        for reason in ("certificate not trusted: self-signed", "refused")
    )
    outcomes = count(connect_error=4)
    advice = describe_failure(make_summary(outcomes=outcomes, failures=[untrusted, refused]))
    assert advice == "no connection could be made: the certificate of the target is not trusted"
    advice = describe_failure(make_summary(outcomes=outcomes, failures=[refused, untrusted]))
    assert advice == "no connection could be made: check scheme, host and port of the URL"
    # A handshake that fails does not blame the host. Somebody was there.
    reason = "TLS: unexpected eof while reading"
    failures = [FailureSummary(outcome=Outcome.CONNECT_ERROR, reason=reason, requests=2)]
    advice = describe_failure(make_summary(outcomes=count(connect_error=2), failures=failures)) or ""
    assert advice == "no connection could be made: the TLS handshake failed, check scheme and port of the URL"
    # Advice is about what was answered.
    for outcome, reason, said in [
        (
            "protocol_error",
            "more than 10 redirections",
            "redirections did not end: curl -IL shows where they lead",
        ),
        ("protocol_error", "a redirection to what is not a URL", "redirections did not lead to a response"),
        ("disconnected", "the response was cut short", "no response was complete: look for a crash"),
        (
            "connect_error",
            "the proxy has answered with status 407",
            "the proxy asks for a user and a password: --proxy http://USER:PASSWORD@HOST:PORT",
        ),
        (
            "connect_error",
            "the proxy has answered with status 403",
            "the proxy made no connection to the target",
        ),
        (
            "connect_error",
            "the proxy hung up",
            "the proxy did not answer: check scheme, host and port of --proxy",
        ),
        (
            "connect_error",
            "proxy: refused",
            "the proxy did not answer: check scheme, host and port of --proxy",
        ),
    ]:
        failures = [FailureSummary(outcome=Outcome(outcome), reason=reason, requests=2)]
        advice = describe_failure(make_summary(outcomes=count(**{outcome: 2}), failures=failures)) or ""
        assert advice.startswith(said)
        assert "check scheme and port" not in advice
    for outcome, reason, said in [
        ("protocol_error", "not HTTP/2: a malformed response", "no response was valid HTTP/2"),
        (
            "disconnected",
            "stream reset: INTERNAL_ERROR",
            "connections or streams were closed without a response",
        ),
        ("connect_error", NO_HTTP2, "the server does not speak HTTP/2: leave --http2 out, or check scheme"),
        ("connect_error", "refused", "no connection could be made: check scheme, host and port of the URL"),
        ("timeout", "no answer within 10s", "nothing was answered in time: --timeout says"),
    ]:
        # A run over http2 is not told of http1.
        failures = [FailureSummary(outcome=Outcome(outcome), reason=reason, requests=2)]
        summary = make_summary(outcomes=count(**{outcome: 2}), failures=failures, engine=Engine.NGHTTP2)
        assert (describe_failure(summary) or "").startswith(said)


def test_a_run_that_failed_entirely_says_what_to_check(make_summary: MakeSummary) -> None:
    """What most requests had decides."""
    for outcomes, said in [
        ({"connect_error": 5}, "no connection could be made: check scheme, host and port of the URL"),
        ({"connect_error": 5, "timeout": 6}, "nothing was answered in time: --timeout says"),
        ({"disconnected": 5}, "connections were closed without a response: check scheme"),
        ({"protocol_error": 5}, "no response was HTTP/1.1: check scheme"),
        ({"not_sent": 9, "timeout": 6}, "nothing was answered in time: --timeout says"),
        ({"not_sent": 9}, "nothing could be sent on time: lower the rate, or add workers"),
        ({"exception": 9, "timeout": 8}, "user code raised an exception in each iteration: its traceback"),
        ({"lost": 9, "not_sent": 8}, "all workers died: check their logs"),
    ]:
        assert (describe_failure(make_summary(outcomes=count(**outcomes))) or "").startswith(said)
    for statuses, said in [
        ({"201": 5}, "no response has the expected status: --expect-status 2xx takes all of these for ok"),
        ({"404": 5}, "no response has the expected status: check path, method and headers"),
        ({"407": 5}, "the proxy asks for a user and a password"),
        ({"201": 1, "500": 4}, "no response has the expected status: check path, method and headers"),
    ]:
        # Statuses that do not count as ok say what to check.
        summary = make_summary(outcomes=count(unexpected_status=5), statuses=statuses)
        assert (describe_failure(summary) or "").startswith(said)
    for outcomes in [{"ok": 1, "connect_error": 999}, {}]:
        # Nothing is said if anything was ok or nothing is accounted. Then the target is right.
        assert describe_failure(make_summary(outcomes=count(**outcomes))) is None


def test_the_headline_says_it(make_summary: MakeSummary, render: Render) -> None:
    """It stands where one looks first."""
    lines = render(build_headline(make_summary(outcomes=count(connect_error=1000)), None))
    assert lines[2].startswith("no connection could be made")


def explain(reason: str, requests: int, outcome: Outcome = Outcome.UNEXPECTED_STATUS) -> FailureSummary:
    """How many requests failed for a reason."""
    return FailureSummary(outcome=outcome, reason=reason, requests=requests)


def test_redirects_that_were_not_followed_have_a_hint(make_summary: MakeSummary, render: Render) -> None:
    """It says how many they are, also beside requests that were ok, and stands once on the screen."""
    failures = [explain("status 302", 1_000), explain("status 301", 4), explain("status 304", 7)]
    hint = "1,004 responses were redirects (301, 302): use the URL that the target redirects to, or follow it"
    for outcomes in ({"unexpected_status": 1_011}, {"ok": 1, "unexpected_status": 1_011}):
        summary = make_summary(outcomes=count(**outcomes), failures=failures, statuses={"302": 1_011})
        assert (describe_redirects(summary) or "").startswith(hint)
        screen = " ".join(" ".join(render(build_screen(summary))).split())
        assert screen.count("responses were redirects") == 1
        assert "--max-redirects 10" in screen
    one = make_summary(outcomes=count(unexpected_status=1), failures=[explain("status 307", 1)])
    assert (describe_redirects(one) or "").startswith("1 response was a redirect (307): ")
    for others in ([], [explain("status 304", 7)], [explain("status 302", 1, Outcome.FAILED_CHECK)]):
        assert describe_redirects(make_summary(outcomes=count(unexpected_status=7), failures=others)) is None


def test_redirects_of_user_code_have_a_hint_of_their_own(make_summary: MakeSummary) -> None:
    """Its requests follow redirects unless their code says otherwise, and no flag changes that."""
    inner = replace(build_user_code_run().inner_requests[0], failures=[explain("status 302", 20)])
    summary = replace(build_user_code_run(), inner_requests=[inner])
    hint = "20 responses were redirects (302): leave out allow_redirects=False to follow them, or accept them"
    assert describe_redirects(summary) == f"{hint} with expect='3xx'"


def test_iterations_that_made_no_request_are_no_success_without_a_word(render: Render) -> None:
    """The screen and the report have it; a run in which nothing was ok has other advice."""
    text = "no iteration made a request: Oku counts those of http, and blocks of record"
    summary = build_user_code_run(inner_requests=[])
    assert text in " ".join(" ".join(render(build_screen(summary))).split())
    assert text in Page(build_head(summary)).text
    assert list_hints(replace(summary, engine=Engine.LOCUST)) == ["no iteration made a request"]
    for run in (build_user_code_run(), replace(summary, outcomes=count(exception=9)), build_threshold_run()):
        assert list_hints(run) == []
