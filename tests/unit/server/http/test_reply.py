import pytest

from oku_server.behaviour.fault import Fault
from oku_server.behaviour.plan import Plan
from oku_server.http.answer import CLOSE, KEEP_ALIVE
from oku_server.http.reply import MOST_READY, READY_LIMIT_BYTES, Ending, Replies


@pytest.mark.parametrize(
    ("delay_s", "told"), [(0.0, b"0"), (2.0, b"2"), (0.02, b"0.02"), (1 / 3, b"0.333333333")]
)
def test_a_reply_tells_its_delay(delay_s: float, told: bytes) -> None:
    """Whole seconds have no fraction, others nine digits at most."""
    reply = Replies(b"!").find_ok(delay_s)
    assert reply.delay_s == delay_s
    assert reply.buffers == (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nDelay: %b\r\n\r\n!" % told,)
    assert reply.ending is Ending.OPEN


def test_few_delays_have_one_reply_each_for_all_connections() -> None:
    """Thousands that wait share it."""
    replies = Replies(b"!")
    assert replies.find_ok(1.0) is replies.find_ok(1.0)
    assert replies.find_ok(1.0) is not replies.find_ok(2.0)


@pytest.mark.parametrize("length", [0, READY_LIMIT_BYTES, READY_LIMIT_BYTES + 1])
def test_no_more_than_so_many_replies_are_kept_ready(length: int) -> None:
    """Neither many different delays nor long bodies fill the memory."""
    replies = Replies(b"x" * length)
    for number in range(3 * MOST_READY):
        assert replies.find_ok(float(number)).delay_s == number
        assert len(replies._ready) <= (MOST_READY if length <= READY_LIMIT_BYTES else 0)


@pytest.mark.parametrize(
    ("connection", "ending"), [(b"", Ending.OPEN), (KEEP_ALIVE, Ending.OPEN), (CLOSE, Ending.CLOSE)]
)
def test_a_reply_says_what_comes_of_the_connection(connection: bytes, ending: Ending) -> None:
    """Its header and its ending agree."""
    reply = Replies(b"!").build(Plan(0.0, None), is_head=False, connection=connection)
    assert reply.buffers[0].endswith(b"Delay: 0\r\n" + connection + b"\r\n!")
    assert reply.ending is ending


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
    """What is never written has no bytes."""
    reply = Replies(b"01234").build(Plan(0.5, fault), is_head=False, connection=b"")
    assert reply.ending is ending
    assert b"".join(reply.buffers).endswith(end)
    assert bool(reply.buffers) is bool(end)
    assert reply.delay_s >= 0.5


@pytest.mark.parametrize("fault", [None, Fault.ERROR, Fault.TRUNCATE])
def test_a_reply_to_head_has_no_body(fault: Fault | None) -> None:
    """It announces one all the same."""
    reply = Replies(b"01234").build(Plan(0.0, fault), is_head=True, connection=b"")
    assert reply.buffers[0].endswith(b"\r\n\r\n")
    assert b"\r\nContent-Length: 0\r\n" not in reply.buffers[0]
