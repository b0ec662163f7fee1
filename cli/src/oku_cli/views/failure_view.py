"""Says in one line what to check when no request of a run was ok, as a newcomer's first run often ends."""

from collections.abc import Sequence

import msgspec

from oku_core.accounting.failure_reason import UNTRUSTED
from oku_core.accounting.outcome import Outcome
from oku_core.http_client.error_reason import NO_HTTP2
from oku_core.results.request_summary import FailureSummary
from oku_core.results.summary import Summary, Unit
from oku_core.spec.spec import Engine

_ON_ITERATIONS = {
    Outcome.TIMEOUT: "no iteration ended in time: --iteration-timeout says how long one may take",
    Outcome.FAILED_CHECK: "in each iteration a request or a check failed: look at the requests by name",
}
"""What is said otherwise of iterations of user code."""
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
"""What is said otherwise over HTTP/2: the target does speak that then."""


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
        return _describe_statuses({f"{status[0]}xx" for status in summary.statuses})
    if most is Outcome.CONNECT_ERROR:
        return _describe_connecting(summary.failures)
    return (_ADVICE | _OVER_HTTP2)[most] if summary.engine is Engine.NGHTTP2 else _ADVICE[most]


def _describe_connecting(failures: Sequence[FailureSummary]) -> str:
    """Why most connections failed, where that says what to check; the first reason is the most frequent."""
    reasons = [failure.reason for failure in failures if failure.outcome is Outcome.CONNECT_ERROR]
    if reasons and reasons[0].startswith(UNTRUSTED):
        return "no connection could be made: the certificate of the target is not trusted"
    if reasons and reasons[0] == NO_HTTP2:
        return f"{NO_HTTP2}: leave --http2 out, or check scheme and port of the URL"
    return _ADVICE[Outcome.CONNECT_ERROR]


def _describe_statuses(classes: set[str]) -> str:
    if classes == {"2xx"}:
        return "no response has the expected status: --expect-status 2xx takes all of these for ok"
    if classes == {"3xx"}:
        return "the target redirects: use the URL that it redirects to, or --max-redirects (aiohttp only)"
    return "no response has the expected status: check path, method and headers, or --expect-status"
