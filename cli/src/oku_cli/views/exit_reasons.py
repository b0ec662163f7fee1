"""Explains why a command that followed a run does not end with 0, and what to check when nothing was ok."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from oku_cli.exit_code import ExitCode
from oku_core.accounting.outcome import UNTRUSTED, Outcome, count_sent
from oku_core.accounting.run_state import REST_STATES, RunState
from oku_core.http_client.error_reason import (
    CUT_SHORT,
    NO_HTTP2,
    PROXY_FAULT,
    PROXY_HUNG_UP,
    PROXY_REFUSED,
    REDIRECTED_TOO_OFTEN,
    REDIRECTION,
    TLS,
    explain_proxy_refusal,
    explain_status,
)
from oku_core.http_client.redirects import REDIRECTIONS
from oku_core.spec.spec import Engine
from oku_core.summary.summary import Summary, Unit
from oku_core.summary.validity import Flag
from oku_core.tables.formatting import format_count, in_units
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_VERBS = {ThresholdVerdict.FAILED: "failed", ThresholdVerdict.UNDECIDED: "is undecided"}

_REDIRECTS = "use the URL that the target redirects to, or follow it with --max-redirects 10"
_REDIRECTS_OF_USER_CODE = "leave out allow_redirects=False to follow them, or accept them with expect='3xx'"


class ExitReason(NamedTuple):
    """Something that asks for an exit code other than 0, as a sentence without its full stop."""

    code: ExitCode
    text: str


def list_exit_reasons(
    summary: Summary, *, allows_undecided: bool = False, lost_output: Sequence[str] = ()
) -> list[ExitReason]:
    """List the reasons, starting with the exit code's own; there are none exactly if it is 0.

    An undecided threshold is one, unless that is allowed. `lost_output` explains why files or standard output
    could not be written.
    """
    lost = [ExitReason(ExitCode.WRONG_INPUT, text) for text in lost_output]
    return [*lost, *_iter_reasons(summary, allows_undecided=allows_undecided)]


def describe_nothing_ok(summary: Summary) -> str:
    """Note that nothing of a run at rest was ok, and whether anything was sent; empty if something was."""
    has_results = summary.accounted > 0 or summary.state is RunState.COMPLETED
    if summary.outcomes.ok or not has_results or summary.state not in REST_STATES:
        return ""
    counted = in_units("requests", summary.unit)
    if not count_sent(msgspec.structs.astuple(summary.outcomes)):
        due = f", and {format_count(summary.accounted)} were due" if summary.accounted else ""
        return f"no {counted} were sent{due}"
    return f"none of {format_count(summary.accounted)} accounted {counted} were ok"


def _iter_reasons(summary: Summary, *, allows_undecided: bool) -> Iterator[ExitReason]:
    for validity in summary.validity:
        if validity.flag is Flag.UNBALANCED:
            detail = in_units(validity.detail, summary.unit)
            yield ExitReason(ExitCode.UNBALANCED, f"the account does not balance: {detail}")
    for text in _iter_not_passed(summary, allows_undecided=allows_undecided):
        yield ExitReason(ExitCode.NOT_PASSED, text)
    if summary.state is not RunState.COMPLETED:
        reason = f": {summary.reason}" if summary.reason else ""
        yield ExitReason(ExitCode.CUT_SHORT, f"the run is {summary.state}{reason}")


def _iter_not_passed(summary: Summary, *, allows_undecided: bool) -> Iterator[str]:
    undecided = () if allows_undecided else (ThresholdVerdict.UNDECIDED,)
    wrong = (ThresholdVerdict.FAILED, *undecided)
    # A run that is paused can go on, and has no verdict before.
    if summary.verdict not in wrong or summary.state is RunState.PAUSED:
        return
    texts = [
        f"the threshold {threshold.expression} {_VERBS[threshold.verdict]}"
        for threshold in summary.thresholds
        if threshold.verdict in wrong
    ]
    texts += filter(None, [describe_nothing_ok(summary)])
    yield from texts or [f"the verdict on the run is {summary.verdict}"]


_ON_ITERATIONS = {
    Outcome.TIMEOUT: "no iteration ended in time: --iteration-timeout says how long one may take",
    Outcome.FAILED_CHECK: "in each iteration a request or a check failed: look at the requests by name",
}
"""The same texts, worded for iterations of user code."""
_ADVICE = {
    Outcome.TIMEOUT: "nothing was answered in time: --timeout says how long a request may take",
    Outcome.CONNECT_ERROR: "no connection could be made: check scheme, host and port of the URL",
    Outcome.DISCONNECTED: "connections were closed without a response: check scheme and port of the URL",
    Outcome.PROTOCOL_ERROR: "no response was HTTP/1.1: check scheme and port of the URL",
    Outcome.NOT_SENT: "nothing could be sent on time: lower the rate, or add workers",
    Outcome.LOST: "all workers died: check their logs",
    Outcome.FAILED_CHECK: "no response passed its checks: look at what the target answers",
    Outcome.EXCEPTION: "user code raised an exception in each iteration: its traceback says where",
}
_OVER_HTTP2 = {
    Outcome.DISCONNECTED: "connections or streams were closed without a response: look at the reasons",
    Outcome.PROTOCOL_ERROR: "no response was valid HTTP/2: look at the reasons",
}
"""Other advice for HTTP/2: the target does speak it then."""

_PROXY_AUTHENTICATION = "the proxy asks for a user and a password: --proxy http://USER:PASSWORD@HOST:PORT"
_NO_PROXY = "the proxy did not answer: check scheme, host and port of --proxy"
_PROXY_AUTHENTICATION_REQUIRED = 407
_BY_REASON = {
    UNTRUSTED: "no connection could be made: the certificate of the target is not trusted",
    NO_HTTP2: f"{NO_HTTP2}: leave --http2 out, or check scheme and port of the URL",
    TLS: "no connection could be made: the TLS handshake failed, check scheme and port of the URL",
    explain_proxy_refusal(_PROXY_AUTHENTICATION_REQUIRED): _PROXY_AUTHENTICATION,
    PROXY_REFUSED: "the proxy made no connection to the target: check host and port of the URL, and "
    "whether the proxy allows them",
    PROXY_HUNG_UP: _NO_PROXY,
    PROXY_FAULT: _NO_PROXY,
    CUT_SHORT: "no response was complete: look for a crash, a timeout or a wrong Content-Length at the "
    "target, or at a proxy before it",
    REDIRECTED_TOO_OFTEN: "redirections did not end: curl -IL shows where they lead; if that is no loop, "
    "raise --max-redirects",
}
"""The advice by the beginning of the most frequent reason."""


def describe_failure(summary: Summary) -> str | None:
    """What to check, by the outcome of most requests; None if any request was ok, or none is accounted.

    If any were sent, it is the outcome of most of these: a target that does not answer keeps others back.
    """
    counts = {Outcome(name): count for name, count in msgspec.structs.asdict(summary.outcomes).items()}
    most = max(
        counts, key=lambda outcome: (outcome is not Outcome.NOT_SENT and counts[outcome] > 0, counts[outcome])
    )
    if counts[Outcome.OK] or not counts[most]:
        return None
    if summary.unit is Unit.ITERATION:
        return (_ADVICE | _ON_ITERATIONS)[most]
    if most is Outcome.UNEXPECTED_STATUS:
        return describe_redirects(summary) or _describe_statuses(set(summary.statuses))
    # The most frequent one comes first.
    reason = next((failure.reason for failure in summary.failures if failure.outcome is most), "")
    for start, advice in _BY_REASON.items():
        if reason.startswith(start):
            return advice
    if most is Outcome.PROTOCOL_ERROR and REDIRECTION in reason:
        return f"redirections did not lead to a response: {reason}"
    return (_ADVICE | _OVER_HTTP2)[most] if summary.engine is Engine.NGHTTP2 else _ADVICE[most]


def list_hints(summary: Summary) -> list[str]:
    """What a user should know whether or not anything was ok."""
    return list(filter(None, (describe_redirects(summary), _describe_no_requests(summary))))


def _describe_no_requests(summary: Summary) -> str | None:
    if summary.unit is not Unit.ITERATION or summary.inner_requests or not summary.outcomes.ok:
        return None
    counted = ": Oku counts those of http, and blocks of record" if summary.engine is Engine.PYTHON else ""
    return f"no iteration made a request{counted}"


def describe_redirects(summary: Summary) -> str | None:
    """How to follow or accept the redirects that failed, as many as the reasons name; None without any."""
    is_user_code = summary.unit is Unit.ITERATION
    failures = (each for inner in summary.inner_requests for each in inner.failures)
    redirects = {explain_status(status): status for status in sorted(REDIRECTIONS)}
    counts = Counter[int]()
    for failure in failures if is_user_code else summary.failures:
        if failure.outcome is Outcome.UNEXPECTED_STATUS and failure.reason in redirects:
            counts[redirects[failure.reason]] += failure.requests
    if not counts:
        return None
    total, statuses = counts.total(), ", ".join(map(str, sorted(counts)))
    were = "response was a redirect" if total == 1 else "responses were redirects"
    remedy = _REDIRECTS_OF_USER_CODE if is_user_code else _REDIRECTS
    return f"{format_count(total)} {were} ({statuses}): {remedy}"


def _describe_statuses(statuses: set[str]) -> str:
    if statuses == {str(_PROXY_AUTHENTICATION_REQUIRED)}:
        return _PROXY_AUTHENTICATION
    classes = {f"{status[0]}xx" for status in statuses}
    if classes == {"2xx"}:
        return "no response has the expected status: --expect-status 2xx takes all of these for ok"
    return "no response has the expected status: check path, method and headers, or --expect-status"
