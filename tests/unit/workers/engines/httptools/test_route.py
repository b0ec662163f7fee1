"""Which answers are looked up as a whole, and which are recognised by their shape."""

from oku_core.accounting.outcome import OK
from oku_core.http_client.idle_pool import IdleConnection
from oku_core.http_client.response_reader import ResponseReader
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.engines.httptools.request import SharedBody
from oku_workers.engines.httptools.route import Route

ANSWER = b"HTTP/1.1 200 OK\r\nX-Request-Id: %d\r\nContent-Length: 2\r\n\r\nhi"


def build_route() -> Route[IdleConnection]:
    """A route that has read one answer."""
    spec = Spec(urls=(Url("http://host/"),))
    route: Route[IdleConnection] = Route(RequestMix(spec).templates[0], SharedBody(lambda _: b""), None, 1.0)
    reader = ResponseReader(has_bodies=True)
    route.prepare(reader)
    reader.feed(ANSWER % 0)
    route.learn(ANSWER % 0, route.judge(reader))
    return route


def test_answers_that_all_differ_are_not_looked_up_any_more() -> None:
    """They are recognised all the same."""
    route = build_route()
    parsed = [route.recognise(ANSWER % number) for number in range(1, 1000)]
    assert set(parsed) == {(OK, 200, 2, "")}
    assert route.find_known is None


def test_answers_that_are_the_same_again_are_looked_up_again() -> None:
    """A target may say the same for a while, and then something else."""
    route = build_route()
    for number in range(1, 1000):
        route.recognise(ANSWER % number)
    for _ in range(2):
        route.recognise(ANSWER % 7)
    assert route.find_known is not None
    assert route.find_known(ANSWER % 7) == (OK, 200, 2, "")
    for number in range(1000, 1200):
        route.recognise(ANSWER % number)
    assert route.find_known is not None, "a few others change nothing"
