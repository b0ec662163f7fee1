import pytest
from tests.unit.server.client import Client, Server

from oku_core.spec.values.delay import parse_delay
from oku_server.behaviour.planner import MOST_OVERRIDES, NO_OVERRIDES, Overrides

LINES = b"Host: a\r\nOku-Run: r1\r\n"


def ask(client: Client, index: int, headers: bytes) -> None:
    """Send a request in one piece."""
    client.say(b"GET /%d HTTP/1.1\r\n" % index + LINES + headers + b"\r\n")


def fetch_delays(server: Server, headers: bytes, *, known: bool) -> list[float]:
    """Measure the delays of the first indices with extra headers, whose lines are cached or new."""
    delays = []
    client = server.connect()
    for index in range(20):
        if not known:
            client = server.connect()
            ask(client, index, headers + b"X-New: %d\r\n" % index)
        else:
            ask(client, index, headers)
        server.time.pass_s(3.1, step_s=0.01)
        delays.append(float(client.written.rpartition(b"\r\nDelay: ")[2].partition(b"\r\n")[0]))
    return delays


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("headers", "text", "seed"),
    [
        (b"", "0..2s", 0),
        (b"Oku-Delay: 0..3s\r\n", "0..3s", 0),
        (b"oku-seed:7 \r\n", "0..2s", 7),
        (b"Oku-Seed: 7\r\nOKU-DELAY: 5ms..80ms\r\n", "5ms..80ms", 7),
        (b"Oku-Delay: 20ms\r\n", "20ms", 0),
        (b"Oku-Delay: 0s\r\n", "0s", 0),
    ],
)
def test_a_request_may_override_delay_and_seed(headers: bytes, text: str, seed: int, *, known: bool) -> None:
    """Delay and seed are those of its headers, or the server's own where there is no header."""
    delays = fetch_delays(Server(delay="0..2s"), headers, known=known)
    assert delays == pytest.approx([parse_delay(text).draw_s(seed, index) for index in range(20)])


@pytest.mark.parametrize("known", [False, True])
def test_requests_with_other_overrides_do_not_change_each_other(*, known: bool) -> None:
    """One server serves several runs, request by request."""
    server = Server(delay="0s")
    first = fetch_delays(server, b"Oku-Delay: 0..3s\r\n", known=known)
    fetch_delays(server, b"Oku-Delay: 0..3s\r\nOku-Seed: 9\r\n", known=known)
    assert fetch_delays(server, b"", known=known) == [0.0] * 20
    assert fetch_delays(server, b"Oku-Delay: 0..3s\r\n", known=known) == first
    assert len(set(first)) > 1


def test_overrides_change_no_fault_rate() -> None:
    """The server alone decides how often it misbehaves; the seed decides which indices are hit."""
    server = Server(error=0.5)

    def find_errors(headers: bytes) -> list[bool]:
        client = server.connect()
        for index in range(40):
            ask(client, index, headers)
        return [b" 500 " in answer for answer in client.written.split(b"HTTP/1.1")[1:]]

    own = find_errors(b"")
    assert own == find_errors(b"Oku-Delay: 0s\r\n") == find_errors(b"Oku-Delay: 0s\r\nOku-Seed: 0\r\n")
    other = find_errors(b"Oku-Seed: 1\r\n")
    assert other != own
    assert 10 < sum(other) < 30


@pytest.mark.parametrize(
    "headers", [b"Oku-Delay: soon\r\n", b"Oku-Seed: -1\r\n", b"Oku-Seed: 1\r\nOku-Seed: 1\r\n"]
)
def test_an_override_that_is_not_valid_is_refused(headers: bytes) -> None:
    """The request gets status 400 and a line with the reason, is not counted, and loses its connection."""
    server = Server()
    for _ in range(2):
        client = server.connect()
        ask(client, 1, headers)
        head, _, body = client.written.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert body.startswith(headers.partition(b":")[0] + b": ")
        assert body.count(b"\n") == 1
        assert body.endswith(b"\n")
        assert client.closed
    assert server.count("r1") == 0
    assert len(server.service.head_cache) == 0


def test_the_responses_of_the_last_overrides_are_kept() -> None:
    """A server keeps a planner for each delay and seed that is asked for, up to a limit."""
    service = Server().service
    first = service.find_responses(Overrides(parse_delay("1s"), 0))
    assert service.find_responses(Overrides(parse_delay("1s"), 0)) is first
    assert service.find_responses(NO_OVERRIDES) is service.find_responses(Overrides(None, None)) is not first
    for seed in range(1, MOST_OVERRIDES + 1):
        service.find_responses(Overrides(parse_delay("1s"), seed))
    assert service.find_responses(Overrides(parse_delay("1s"), 0)) is not first
