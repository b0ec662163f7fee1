from collections.abc import Callable

import pytest

from oku_cli.views.account_view import build_headline
from oku_cli.views.failure_view import describe_failure
from oku_core.accounting.outcome import Outcome
from oku_core.http_client.error_reason import NO_HTTP2
from oku_core.results.request_summary import FailureSummary, OutcomeCounts
from oku_core.results.summary import Summary
from oku_core.spec.spec import Engine

MakeSummary = Callable[..., Summary]
Render = Callable[..., list[str]]


def count(**given: int) -> OutcomeCounts:
    """Outcomes, none but these."""
    return OutcomeCounts(**{outcome.value: given.get(outcome.value, 0) for outcome in Outcome})


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"connect_error": 5}, "no connection could be made: check scheme, host and port of the URL"),
        ({"connect_error": 5, "timeout": 6}, "nothing was answered in time: --timeout says"),
        ({"disconnected": 5}, "connections were closed without a response: check scheme"),
        ({"protocol_error": 5}, "no response was HTTP/1.1: check scheme"),
        ({"not_sent": 9, "timeout": 6}, "nothing was answered in time: --timeout says"),
        ({"not_sent": 9}, "nothing could be sent on time: lower the rate, or add workers"),
        ({"exception": 9, "timeout": 8}, "user code raised an exception in each iteration: its traceback"),
        ({"lost": 9, "not_sent": 8}, "all workers died: check their logs"),
    ],
)
def test_a_run_that_failed_entirely_says_what_to_check(
    make_summary: MakeSummary, outcomes: dict[str, int], said: str
) -> None:
    """What most requests had decides."""
    assert (describe_failure(make_summary(outcomes=count(**outcomes))) or "").startswith(said)


def test_a_certificate_that_is_not_trusted_is_named(make_summary: MakeSummary) -> None:
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


@pytest.mark.parametrize(
    ("outcome", "reason", "said"),
    [
        ("protocol_error", "not HTTP/2: a malformed response", "no response was valid HTTP/2"),
        (
            "disconnected",
            "stream reset: INTERNAL_ERROR",
            "connections or streams were closed without a response",
        ),
        ("connect_error", NO_HTTP2, "the server does not speak HTTP/2: leave --http2 out, or check scheme"),
        ("connect_error", "refused", "no connection could be made: check scheme, host and port of the URL"),
        ("timeout", "no answer within 10s", "nothing was answered in time: --timeout says"),
    ],
)
def test_a_run_over_http2_is_not_told_of_http1(
    make_summary: MakeSummary, outcome: str, reason: str, said: str
) -> None:
    """What was answered at all was HTTP/2, unless the target speaks something else: then that is said."""
    failures = [FailureSummary(outcome=Outcome(outcome), reason=reason, requests=2)]
    summary = make_summary(outcomes=count(**{outcome: 2}), failures=failures, engine=Engine.NGHTTP2)
    assert (describe_failure(summary) or "").startswith(said)


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ({"201": 5}, "no response has the expected status: --expect-status 2xx takes all of these for ok"),
        ({"301": 4, "302": 1}, "the target redirects: use the URL that it redirects to"),
        ({"404": 5}, "no response has the expected status: check path, method and headers"),
        ({"201": 1, "500": 4}, "no response has the expected status: check path, method and headers"),
    ],
)
def test_statuses_that_do_not_count_as_ok_say_what_to_check(
    make_summary: MakeSummary, statuses: dict[str, int], said: str
) -> None:
    """Somebody's POST is answered with 201, somebody's URL lacks its slash."""
    summary = make_summary(outcomes=count(unexpected_status=5), statuses=statuses)
    assert (describe_failure(summary) or "").startswith(said)


@pytest.mark.parametrize("outcomes", [{"ok": 1, "connect_error": 999}, {}])
def test_nothing_is_said_if_anything_was_ok_or_nothing_is_accounted(
    make_summary: MakeSummary, outcomes: dict[str, int]
) -> None:
    """Then the target is right."""
    assert describe_failure(make_summary(outcomes=count(**outcomes))) is None


def test_the_headline_says_it(make_summary: MakeSummary, render: Render) -> None:
    """It stands where one looks first."""
    lines = render(build_headline(make_summary(outcomes=count(connect_error=1000)), None))
    assert lines[2].startswith("no connection could be made")
