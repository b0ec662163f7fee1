from itertools import count, repeat

import pytest
from tests.unit.server.client import Chance

from oku_core.spec.values.delay import parse_delay
from oku_server.behaviour.fault import Fault, FaultRates
from oku_server.behaviour.planner import Overrides, Planner
from oku_server.http.planned_response import (
    CLOSE,
    COPY_LIMIT_BYTES,
    KEEP_ALIVE,
    MOST_READY,
    READY_LIMIT_BYTES,
    Content,
    DelayedResponse,
    Ending,
    PlannedResponses,
    build_refusal,
    build_response,
    build_text,
)


def build_responses(delay: str = "0s", body: bytes = b"!", fault: Fault | None = None) -> PlannedResponses:
    """Build the responses of a server on which every request meets the same fault, if any."""
    rates = FaultRates() if fault is None else FaultRates(**{fault.value: 1.0})
    return PlannedResponses(Planner(parse_delay(delay), rates, 0, Chance(repeat(0.0))), body)


@pytest.mark.parametrize(
    ("delay", "told"), [("0s", b"0"), ("2s", b"2"), ("20ms", b"0.02"), ("333.3333333333ms", b"0.333333333")]
)
def test_a_response_tells_its_delay(delay: str, told: bytes) -> None:
    """Whole seconds have no fraction; others have at most nine digits."""
    response = build_responses(delay).find_plain(b"1")
    assert response == DelayedResponse(
        parse_delay(delay).mean_s,
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nDelay: %b\r\n\r\n!" % told,),
        Ending.OPEN,
    )


def test_all_connections_share_the_response_of_a_delay() -> None:
    """Thousands of requests with the same delay share one object, whatever they override."""
    responses = build_responses("0..3s")
    by_delay = {
        response.delay_s: response for response in map(responses.find_plain, [b"1", b"2", b"3", b"4"])
    }
    assert len(by_delay) > 1
    overridden = responses.override(Overrides(None, 1))
    for index in range(20):
        response = overridden.find_plain(b"%d" % index)
        assert response is by_delay.setdefault(response.delay_s, response)


@pytest.mark.parametrize("length", [0, READY_LIMIT_BYTES, READY_LIMIT_BYTES + 1])
def test_the_number_of_responses_kept_ready_is_bounded(length: int) -> None:
    """Neither many different delays nor long bodies fill the memory."""
    planner = Planner(
        parse_delay("0ms..1000s"), FaultRates(), 0, Chance(number / 10_000 for number in count())
    )
    responses = PlannedResponses(planner, b"x" * length)
    seen = {responses.find_plain(b"not an index").delay_s for _ in range(3 * MOST_READY)}
    assert len(seen) == 3 * MOST_READY
    assert len(responses) == (MOST_READY if length <= READY_LIMIT_BYTES else 0)


@pytest.mark.parametrize(
    ("fault", "ending", "end"),
    [
        (Fault.ERROR, Ending.OPEN, b"--error-rate\n"),
        (Fault.RESET, Ending.RESET, b""),
        (Fault.STALL, Ending.NEVER, b""),
        (Fault.TRUNCATE, Ending.CLOSE, b"Connection: close\r\n\r\n01"),
    ],
)
def test_each_fault_has_its_ending(fault: Fault, ending: Ending, end: bytes) -> None:
    """A response that is never written has no bytes; plain requests and others get the same one."""
    responses = build_responses("500ms", b"01234", fault)
    response = responses.find_plain(b"1")
    assert response == responses.build(b"1", is_head=False, connection=b"")
    assert response.ending is ending
    assert b"".join(response.buffers).endswith(end)
    assert bool(response.buffers) is bool(end)
    assert response.delay_s >= 0.5
    if fault is Fault.ERROR:
        assert response.buffers[0].startswith(b"HTTP/1.1 500 Internal Server Error\r\n")


@pytest.mark.parametrize("fault", [None, Fault.ERROR, Fault.TRUNCATE])
def test_a_response_to_head_has_no_body(fault: Fault | None) -> None:
    """The response announces a body all the same."""
    response = build_responses("0s", b"01234", fault).build(b"1", is_head=True, connection=b"")
    assert response.buffers[0].endswith(b"\r\n\r\n")
    assert b"\r\nContent-Length: 0\r\n" not in response.buffers[0]


def test_a_response_has_a_status_a_length_and_a_body() -> None:
    """The response is complete HTTP/1.1 in one buffer."""
    response = build_response(Content(b"200 OK", b"12345"), connection=b"")
    assert response == (0.0, (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345",), Ending.OPEN)
    # More headers stand in the head. Each header brings its own line ending.
    response = build_response(Content(b"200 OK", b""), connection=CLOSE, headers=b"Delay: 0\r\n")
    assert response.buffers[0].endswith(b"\r\nDelay: 0\r\nConnection: close\r\n\r\n")
    cases: list[tuple[bytes, Ending]] = [(b"", Ending.OPEN), (KEEP_ALIVE, Ending.OPEN), (CLOSE, Ending.CLOSE)]
    for connection, ending in cases:
        # A response says what happens to the connection. The header and the ending of a response agree.
        response = build_response(Content(b"200 OK", b"!"), connection=connection)
        assert response.buffers[0].endswith(b"Content-Length: 1\r\n" + connection + b"\r\n!")
        assert response.ending is ending
    # A body may be sent in part. The head announces the whole body.
    content = Content(b"200 OK", b"12345")
    assert build_response(content, connection=b"", sent=2).buffers == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12",
    )
    assert build_response(content, connection=b"", sent=0).buffers[0].endswith(b"Content-Length: 5\r\n\r\n")
    # A long body is not copied. The body is the second buffer, and every connection gets the same object.
    body = b"x" * (COPY_LIMIT_BYTES + 1)
    assert build_response(Content(b"200 OK", body), connection=b"").buffers[1] is body
    # The type of a body is told where there is one.
    contents = (build_text(b"200 OK", b""), Content(b"200 OK", b"", b"a/b"), Content(b"200 OK", b""))
    text, typed, plain = (build_response(content, connection=b"").buffers[0] for content in contents)
    assert b"\r\nContent-Type: text/plain; charset=utf-8\r\n" in text
    assert b"\r\nContent-Type: a/b\r\n" in typed
    assert b"Content-Type" not in plain
    # A refusal says why. The body repeats the status for people, or gives the reason.
    assert build_refusal(b"400 Bad Request") == build_text(b"400 Bad Request", b"400 bad request\n")
    assert build_refusal(b"400 Bad Request", b"no") == build_text(b"400 Bad Request", b"no\n")
