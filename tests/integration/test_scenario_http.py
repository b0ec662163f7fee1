"""What scenarios ask with `Http`, and what becomes of it, at a real server."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.kit.free_ports import pick_port
from tests.kit.scenarios.http_bench import BuildBench, HttpBench
from tests.kit.servers.shop import Shop

from oku import Http, RequestError, Response, record
from oku.http.scope import Scope
from oku_core.data.data_format import DataFormat
from oku_core.http_client.cookies import CookieJar
from oku_core.spec.data_file import DataFile
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.request_content import CLOSE, Header

if TYPE_CHECKING:
    from oku.http.request_body import Uploads

DATA = DataFile(
    name="a.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("sku",), index="1" * 64
)


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    """The server."""
    async with Shop() as shop:
        yield shop


@pytest.fixture
async def build(shop: Shop) -> AsyncIterator[BuildBench]:
    """Makes a bench with a spec of the test, whose base URL is the shop."""
    benches: list[HttpBench] = []

    def build_bench(**fields: Any) -> HttpBench:
        benches.append(HttpBench(**{"base_url": shop.url} | fields))
        return benches[-1]

    yield build_bench
    for bench in benches:
        bench.close()


@pytest.fixture
async def bench(build: BuildBench) -> HttpBench:
    """A bench of a spec that says nothing but the base URL."""
    return build()


async def echo(http: Http, **options: Any) -> dict[str, Any]:
    """What the server was asked by a POST."""
    told: dict[str, Any] = await http.post("/echo", **options).json()
    return told


def find(told: dict[str, Any], name: str) -> list[str]:
    """The values of a header that the server was told."""
    return [value for key, value in told["headers"] if key.lower() == name.lower()]


async def test_an_answer_has_what_the_server_said(bench: HttpBench) -> None:
    """Status, headers in any case, the body as bytes, text and JSON, and what was asked."""
    response = await bench.begin().get("/orders/{i}?all=1")
    assert (response.status, response.ok, response.name) == (401, False, "GET /orders/{i}")
    assert response.url.endswith("/orders/7?all=1")
    response = await bench.begin().get("/products/tea")
    assert response.headers["CONTENT-type"].startswith("application/json")
    assert json.loads(response.body) == json.loads(response.text()) == {"id": "tea", "price": 3.5}
    assert (response.json("/id"), response.json()) == ("tea", {"id": "tea", "price": 3.5})
    assert response.ok


async def test_requests_are_counted_by_name_with_status_and_bytes(bench: HttpBench) -> None:
    """Unless it is named, a request is counted under its method and path as they are written."""
    http = bench.begin()
    await http.get("/products/{i}?a=1")
    await http.get("/status/204", name="none")
    await http.request("options", "/echo")
    first, second, third = bench.read()
    assert first[:4] == (0, "GET /products/{i}", "ok", 200)
    assert first.received == len(b'{"id": "7", "price": 3.5}')
    assert second[:5] == (0, "none", "ok", 204, 0)
    assert third[:4] == (0, "OPTIONS /echo", "ok", 200)
    assert bench.failure == ""


@pytest.mark.parametrize(
    ("method", "has_length"),
    [("get", False), ("post", True), ("put", True), ("patch", True), ("delete", True), ("options", False)],
)
async def test_each_method_is_sent(bench: HttpBench, method: str, *, has_length: bool) -> None:
    """One that may have a body says that it has none."""
    told = await getattr(bench.begin(), method)("/echo").json()
    assert told["method"] == method.upper()
    assert find(told, "content-length") == (["0"] if has_length else [])


async def test_an_answer_to_head_has_no_body(bench: HttpBench) -> None:
    """The connection can be used after it, although a length was announced."""
    http = bench.begin()
    response = await http.head("/products/tea")
    assert (response.status, response.body) == (200, b"")
    assert await http.get("/products/tea").json("/id") == "tea"


BODIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "JSON": ({"json": {"a": [1, None]}}, "application/json", '{"a":[1,null]}'),
    "false as JSON": ({"json": False}, "application/json", "false"),
    "bytes": ({"data": b"abc"}, "application/octet-stream", "abc"),
    "text": ({"data": "käse"}, "text/plain; charset=utf-8", "käse"),
    "form": ({"data": {"a": "1 2", "b": ["x", "y"]}}, "application/x-www-form-urlencoded", "a=1+2&b=x&b=y"),
    "pairs": ({"data": [("a", 1), ("a", 2)]}, "application/x-www-form-urlencoded", "a=1&a=2"),
    "own type": (
        {"data": b"<a/>", "headers": {"content-TYPE": "text/xml"}}, "text/xml", "<a/>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BODIES)
async def test_bodies(bench: HttpBench, case: str) -> None:
    """Each goes out with its length and its content type, unless the request says another one."""
    options, kind, body = BODIES[case]
    told = await echo(bench.begin(), **options)
    assert (told["body"], find(told, "content-type")) == (body, [kind])
    assert find(told, "content-length") == [str(len(body.encode()))]


async def test_files_are_uploaded(bench: HttpBench, shop: Shop, tmp_path: Path) -> None:
    """As bytes, by a path, or open, with fields of a form beside them."""
    path = tmp_path / 'a "b".txt'
    path.write_bytes(b"by path")
    with path.open("rb") as file:
        files: Uploads = {"one": b"bytes", "two": str(path), "three": ("c.bin", file, "a/b"), "four": file}
        response = await bench.begin().post("/upload", files=files, data={"x": 1}, expect=201)
    assert response.json("/fields") == {"x": "1"}
    assert shop.uploads == [
        ("one", "file", "application/octet-stream", b"bytes"),
        ("two", "a %22b%22.txt", "text/plain", b"by path"),
        ("three", "c.bin", "a/b", b"by path"),
        ("four", "a %22b%22.txt", "text/plain", b""),
    ]


async def test_headers(build: BuildBench) -> None:
    """Those of a request replace those of the run, these the defaults; the run may have the index there."""
    bench = build(headers=(Header("X-Run: {i}"), Header("user-agent: run"), Header("X-Both: run")))
    told = await echo(bench.begin(9), headers={"x-both": "request"})
    assert find(told, "x-run") == ["9"]
    assert find(told, "user-agent") == ["run"]
    assert find(told, "x-both") == ["request"]
    assert find(told, "accept-encoding") == ["gzip, deflate"]
    told = await echo(bench.begin(10), headers={"Accept-Encoding": "identity"})
    assert (find(told, "x-run"), find(told, "accept-encoding")) == (["10"], ["identity"])
    told = await echo(bench.begin(11))
    assert (find(told, "x-run"), find(told, "x-both")) == (["11"], ["run"])


async def test_values_that_are_bytes_are_sent_as_they_are(bench: HttpBench) -> None:
    """Not as Python prints them, also if they are no text."""
    http = bench.begin()
    told = await echo(
        http, headers={"X-A": b"one", "X-B": "ü".encode()}, params={"q": b"a b"}, data={"f": b"x"}
    )
    assert (find(told, "x-a"), told["target"], told["body"]) == (["one"], "/echo?q=a+b", "f=x")
    assert find(told, "x-b") == ["ü"]
    assert find(await echo(http, bearer=b"abc"), "authorization") == ["Bearer abc"]
    basic = f"Basic {base64.b64encode(b'ann:pw').decode()}"
    assert find(await echo(http, auth=(b"ann", b"pw")), "authorization") == [basic]


async def test_none_is_not_sent(build: BuildBench) -> None:
    """Neither a value that is None, nor an option; a value of JSON can be null."""
    http = build(headers=(Header("X-Run: run"),)).begin()
    told = await echo(
        http, params={"a": 1, "b": None, "c": [None, 2]}, data={"d": 1, "e": None},
        headers={"X-None": None, "X-Run": None},
    )  # fmt: skip
    assert (told["target"], told["body"]) == ("/echo?a=1&c=2", "d=1")
    assert (find(told, "x-none"), find(told, "x-run")) == ([], ["run"])
    told = await echo(http, params=None, headers=None, data=None, files=None, bearer=None, auth=None)
    assert (told["target"], told["body"], find(told, "authorization")) == ("/echo", "", [])
    assert (await echo(http, json=None))["body"] == "null"
    told = await echo(http, headers={"Content-Type": None}, data=b"x")
    assert (told["body"], find(told, "content-type")) == ("x", [])


async def test_authorization(bench: HttpBench, shop: Shop) -> None:
    """A token, user and password, or what the URL has."""
    http = bench.begin()
    basic = f"Basic {base64.b64encode(b'ann:s p').decode()}"
    assert find(await echo(http, bearer="abc"), "authorization") == ["Bearer abc"]
    assert find(await echo(http, auth=("ann", "s p")), "authorization") == [basic]
    response = await http.get(shop.url.replace("//", "//ann:s%20p@") + "/echo?a=b")
    assert find(response.json(), "authorization") == [basic]
    assert (response.name, response.url) == (f"GET {shop.url}/echo", f"{shop.url}/echo?a=b")


async def test_a_query_is_added(bench: HttpBench) -> None:
    """To what the URL has already, and encoded."""
    told = await bench.begin().get("/echo?a=1", params={"b": "x&y", "c": [1, 2]}).json()
    assert told["target"] == "/echo?a=1&b=x%26y&c=1&c=2"
    told = await bench.begin().get("/echo", params=[("b", "ü")]).json()
    assert told["target"] == "/echo?b=%C3%BC"


async def test_placeholders_stand_for_the_index_and_for_columns(build: BuildBench) -> None:
    """A value stays one part of the path; other braces are sent as they are."""
    bench = build(data=DATA)
    told = await bench.begin(5, {"sku": "a/b c"}).get("/echo/{sku}/{i}/{other}").json()
    assert told["target"] == "/echo/a%2Fb%20c/5/{other}"


async def test_what_cannot_be_sent_is_said_and_not_counted(build: BuildBench) -> None:
    """It is a mistake of the scenario, and no request."""
    bench = build(base_url="")
    http = bench.begin()
    for call, message in (
        (http.get("/orders"), "there is no base URL: give --host"),
        (http.get("orders"), "neither a whole URL nor a path"),
        (http.get("ftp://host/"), "not a URL of http or https"),
        (http.get("http://host/a b"), "write %20 for a blank"),
        (http.request("GE T", "http://host/"), "is not a method"),
        (http.get("http://host/", headers={"a": "b\r\nc: d"}), "line break"),
        (http.get("http://host/", headers={"a b": "c"}), "not the name of a header"),
        (http.get("http://host/", bearer="a\nb"), "line break"),
        (http.get("http://host/", expect="2x"), "is not a status"),
    ):
        with pytest.raises(ValueError, match=message):
            await call
    with pytest.raises(TypeError, match="GET /: there is no argument nmae"):
        http.get("/", nmae="x")  # type: ignore[call-arg]
    assert (bench.read(), bench.failure) == ([], "")


@pytest.mark.parametrize(
    ("expect", "status", "is_ok"),
    [
        (None, 204, True), (None, 304, False), (None, 404, False), (None, 500, False),
        ("2xx", 304, False), (404, 404, True), ([200, "4xx"], 404, True), ("200,201", 204, False),
        ("any", 500, True),
    ],
)  # fmt: skip
async def test_a_status_that_was_not_expected_fails_its_request(
    bench: HttpBench, expect: Any, status: int, *, is_ok: bool
) -> None:
    """The iteration fails with it, but the response is there."""
    options = {} if expect is None else {"expect": expect}
    response = await bench.begin().get(f"/status/{status}", name="page", **options)
    assert (response.status, response.ok) == (status, is_ok)
    [counted] = bench.read()
    wanted = ("ok", "") if is_ok else ("unexpected_status", f"status {status}")
    assert (counted.outcome, counted.reason) == wanted
    assert counted.status == status
    assert bench.failure == ("" if is_ok else f"page: status {status}")


async def test_a_run_that_an_older_oku_stored_expects_what_it_was_submitted_with(build: BuildBench) -> None:
    """Its spec has 200 alone, which no run of user code can ask for; its scenario expected 200 to 399."""
    http = build(expect_status=(ExpectedStatus("200"),)).begin()
    assert [(await http.get(f"/status/{status}")).ok for status in (204, 304, 404)] == [True, True, False]


@pytest.mark.parametrize(
    ("path", "outcome", "reason"),
    [
        ("/hang-up", "disconnected", "the server hung up"),
        ("/slow", "timeout", "no answer within 0.05s"),
        ("/nonsense", "protocol_error", "not HTTP: "),
    ],
)
async def test_without_a_complete_answer_an_error_is_raised(
    bench: HttpBench, path: str, outcome: str, reason: str
) -> None:
    """It counts as with every engine, and goes on as a `RequestError` with the same reason."""
    with pytest.raises(RequestError, match=f"^page: {reason}") as caught:
        await bench.begin().get(path, name="page", timeout=0.05 if outcome == "timeout" else 5)
    [counted] = bench.read()
    assert (counted.outcome, counted.status) == (outcome, 0)
    assert counted.reason.startswith(reason)
    assert (caught.value.reason, caught.value.response) == (counted.reason, None)
    assert bench.failure == f"page: {counted.reason}"


async def test_nobody_to_connect_to(build: BuildBench) -> None:
    """A port that is closed, and a name that does not exist."""
    bench = build(base_url=f"http://127.0.0.1:{pick_port()}")
    with pytest.raises(RequestError, match="refused"):
        await bench.begin().get("/")
    with pytest.raises(RequestError, match=r"name not found|no answer from the name server"):
        await bench.begin().get("http://host.invalid/")
    assert [counted.outcome for counted in bench.read()] == ["connect_error"] * 2


async def test_the_time_limit_of_the_run_holds_for_each_request(build: BuildBench) -> None:
    """Also beside others that have not come to theirs."""
    bench = build(timeout_s=0.1)
    http = bench.begin()
    calls = [http.get("/slow", timeout=5.0), http.get("/slow"), http.get("/")]
    tasks = [asyncio.ensure_future(call) for call in calls]
    done, pending = await asyncio.wait(tasks, timeout=1)
    assert pending == {tasks[0]}
    assert sorted(counted.outcome for counted in bench.read()) == ["ok", "timeout"]
    tasks[0].cancel()
    await asyncio.wait(tasks)
    assert isinstance(tasks[1].exception(), RequestError)
    [counted] = bench.read()
    assert (counted.outcome, counted.reason) == ("timeout", "given up by the scenario")
    assert done


async def test_a_request_can_be_a_task(bench: HttpBench) -> None:
    """With its checks; it can be cancelled before and while it is sent."""
    http = bench.begin()
    async with asyncio.TaskGroup() as group:
        home = group.create_task(http.get("/", name="home").check(lambda _: False, "no"))
        text = group.create_task(http.get("/products/tea").json("/id"))
    assert (home.result().ok, text.result()) == (False, "tea")
    early, slow = asyncio.create_task(http.get("/", name="early")), asyncio.create_task(http.get("/slow"))
    early.cancel()
    await asyncio.sleep(0.05)
    slow.cancel()
    await asyncio.wait({early, slow})
    assert early.cancelled()
    assert slow.cancelled()
    assert sorted((counted.name, counted.outcome) for counted in bench.read()) == [
        ("GET /products/tea", "ok"),
        ("GET /slow", "timeout"),
        ("home", "failed_check"),
    ]


async def test_connections_are_kept(bench: HttpBench, shop: Shop) -> None:
    """One for each request that is in flight at a time, over all iterations."""
    for index in range(10):
        http = bench.begin(index)
        await asyncio.gather(http.get("/"), http.get("/products/1"))
    assert (shop.connections, shop.asked.total()) == (2, 20)


async def test_without_keepalive_each_request_has_a_connection(build: BuildBench, shop: Shop) -> None:
    """The spec says so with its header."""
    bench = build(keepalive=False, headers=(CLOSE,))
    for index in range(3):
        await bench.begin(index).get("/")
    assert shop.connections == 3


async def test_what_would_contradict_the_body_is_not_sent(bench: HttpBench, shop: Shop) -> None:
    """The target would take a part of the request for another one; the right length says nothing new."""
    http = bench.begin()
    assert (await http.post("/echo", data=b"tea", headers={"Content-Length": "3"})).json("/body") == "tea"
    for headers in ({"Content-Length": "2"}, {"Transfer-Encoding": "chunked"}, {"Connection": "upgrade"}):
        with pytest.raises(ValueError, match=min(headers)):
            await http.post("/echo", data=b"tea", headers=headers)
    assert [counted.outcome for counted in bench.read()] == ["ok"]
    assert shop.asked.total() == 1


async def test_a_connection_that_was_given_up_is_not_used_again(bench: HttpBench, shop: Shop) -> None:
    """Its answer would be that of another request."""
    http = bench.begin()
    await http.get("/")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(http.get("/slow"), 0.05)
    assert await http.get("/products/tea").json("/id") == "tea"
    assert shop.connections == 2


async def test_checks_within_a_request_count_in_its_outcome(bench: HttpBench) -> None:
    """What it is asked for with `json` and `check` belongs to it; a status comes first."""
    http = bench.begin()
    with pytest.raises(RequestError, match=r"^page: its JSON has nothing at /none$"):
        await http.get("/products/tea", name="page").json("/none")
    with pytest.raises(RequestError, match="its body is not JSON"):
        await http.get("/", name="page").json()
    response = await http.get("/products/tea", name="page").check(lambda r: r.json("/price") < 1, "too dear")
    assert not response.ok
    await http.get("/", name="page").check(lambda _: False, "")
    await http.get("/status/500", name="page").check(lambda _: False, "never looked at")
    assert [(counted.outcome, counted.reason) for counted in bench.read()] == [
        ("failed_check", "its JSON has nothing at /none"),
        ("failed_check", "its body is not JSON"),
        ("failed_check", "too dear"),
        ("failed_check", "a check has failed"),
        ("unexpected_status", "status 500"),
    ]
    assert bench.failure == "page: its JSON has nothing at /none"


class UnprintableError(Exception):
    """An error that user code has not written well."""

    def __str__(self) -> str:
        """Fail."""
        raise ValueError


async def test_a_request_whose_check_raises_has_failed_that_check(bench: HttpBench) -> None:
    """It was sent and answered, so it counts, whatever the check has raised; that goes on to the scenario."""

    def raise_it(error: BaseException) -> Callable[[Response], object]:
        def check(_: Response) -> object:
            raise error

        return check

    cases: list[tuple[BaseException, str]] = [
        (KeyError("id"), "KeyError: 'id'"),
        (AssertionError("no id"), "no id"),
        (ValueError(), "ValueError"),
        (UnprintableError(), "UnprintableError"),
        (SystemExit(2), "SystemExit: 2"),
        (asyncio.CancelledError(), "CancelledError"),
        (ExceptionGroup("two", [ValueError(1), ValueError(2)]), "ExceptionGroup: two (2 sub-exceptions)"),
    ]
    for error, reason in cases:
        http = bench.begin()
        with pytest.raises(type(error)) as caught:
            await (
                http.get("/products/tea", name="page").check(lambda _: True, "").check(raise_it(error), "no")
            )
        assert caught.value is error
        [counted] = bench.read()
        assert counted[1:4] == ("page", "failed_check", 200), reason
        assert counted.received > 0, reason
        assert counted.reason.startswith(f"{reason} (") or counted.reason == reason, reason
        assert bench.failure == f"page: {counted.reason}"
    with pytest.raises(ValueError, match="is not a JSON pointer"):
        await bench.begin().get("/products/tea", name="page").json("id")
    [counted] = bench.read()
    assert (counted.outcome, counted.status) == ("failed_check", 200)
    with pytest.raises(KeyError):
        await Http(bench.client, Scope()).get("/").check(raise_it(KeyError("id")), "")


async def test_checks_after_a_request_count_in_the_iteration_alone(bench: HttpBench) -> None:
    """The request has been counted by then."""
    response = await bench.begin().get("/products/tea", name="page")
    assert response.check(condition=True, text="never")
    assert bench.failure == ""
    assert not response.check(response.json("/price") < 1, "too dear")
    assert bench.failure == "page: too dear"
    assert [counted.outcome for counted in bench.read()] == ["ok"]
    http = bench.begin()
    assert not http.check(condition=False, text="no luck")
    assert bench.failure == "no luck"


async def test_bodies_are_decompressed_or_not_kept(bench: HttpBench) -> None:
    """What is counted are the bytes that were sent."""
    http = bench.begin()
    response = await http.get("/gzip")
    assert (response.json("/tea"), response.received > 20) == ("green", True)
    dropped = await http.get("/gzip", discard_body=True)
    assert dropped.received == response.received
    with pytest.raises(RequestError, match="was not kept"):
        dropped.text()


async def test_redirections_are_followed_within_one_request(bench: HttpBench, shop: Shop) -> None:
    """With the cookies that are set on the way, and counted once."""
    http = bench.begin()
    response = await http.get("/redirect/3", name="way", headers={"X-Mine": "1"}, bearer="abc")
    told = response.json()
    assert (told["target"], response.url) == ("/echo", f"{shop.url}/echo")
    assert (find(told, "cookie"), find(told, "x-mine")) == (["way=1"], ["1"])
    assert find(told, "authorization") == ["Bearer abc"]
    assert [(counted.name, counted.status) for counted in bench.read()] == [("way", 200)]
    assert shop.asked == {"GET /redirect/{times}": 3, "GET /echo": 1}


async def test_redirections_that_are_not_followed(bench: HttpBench, shop: Shop) -> None:
    """None where none is wanted, and not more than ten."""
    http = bench.begin()
    assert (await http.get("/redirect/1", allow_redirects=False)).status == 302
    assert (await http.get("/redirect/1", allow_redirects=None, expect=None, timeout=None)).status == 200
    with pytest.raises(RequestError, match="more than 10 redirections"):
        await http.get("/redirect/11")
    assert (await http.get("/redirect/10")).status == 200
    assert shop.asked == {"GET /redirect/{times}": 1 + 1 + 11 + 10, "GET /echo": 2}


@pytest.mark.parametrize(
    ("status", "method", "body"),
    [(302, "GET", ""), (303, "GET", ""), (307, "POST", "abc"), (308, "POST", "abc")],
)
async def test_a_post_that_is_redirected(bench: HttpBench, status: int, method: str, body: str) -> None:
    """It turns into a GET as in browsers, or goes out again with its body."""
    told = await bench.begin().post("/redirect/1", params={"status": status}, data=b"abc").json()
    assert (told["method"], told["body"]) == (method, body)
    assert find(told, "content-type") == (["application/octet-stream"] if body else [])


async def test_another_origin_gets_nothing_of_the_request(build: BuildBench) -> None:
    """No header or token goes there, and no body; cookies go by host, as in browsers."""
    async with Shop() as other:
        http = build(headers=(Header("X-Run: 1"),)).begin()
        options: dict[str, Any] = {"params": {"to": f"{other.url}/echo"}, "headers": {"X-Mine": "1"}}
        told = await http.get("/leave", **options, bearer="abc").json()
        names = {name.lower() for name, _ in told["headers"]}
        assert names == {"host", "accept", "accept-encoding", "user-agent"}
        assert find(told, "host") == [other.url.removeprefix("http://")]
        with pytest.raises(RequestError, match="a request with a body to another origin"):
            await http.get("/leave", **options, data=b"abc")


async def test_cookies_are_those_of_the_iteration(bench: HttpBench) -> None:
    """The next one begins without."""
    http = bench.begin()
    assert await http.get("/cart").json("/lines") == 0
    await http.post("/cart")
    await http.post("/cart")
    assert await http.get("/cart").json("/lines") == 2
    assert await bench.begin().get("/cart").json("/lines") == 0
    http.clear_cookies()
    assert await http.get("/cart").json("/lines") == 0


async def test_cookies_stand_beside_those_of_a_header_that_is_given(build: BuildBench) -> None:
    """In one header; what the server has set replaces what has its name."""
    http = build(headers=(Header("Cookie: lang=en; lines=9"),)).begin()
    assert find(await http.get("/echo").json(), "cookie") == ["lang=en; lines=9"]
    await http.post("/cart")
    [set_by_server] = find(await http.get("/echo", headers={"cookie": ""}).json(), "cookie")
    name = set_by_server.partition("=")[0]
    assert name not in ("lang", "lines")
    given = {"Cookie": f"mine=1; {name}=old"}
    assert find(await http.get("/echo").json(), "cookie") == [f"lang=en; lines=9; {set_by_server}"]
    assert find(await http.get("/echo", headers=given).json(), "cookie") == [f"mine=1; {set_by_server}"]
    assert find(await http.get("/redirect/1").json(), "cookie") == [
        f"lang=en; lines=9; {set_by_server}; way=1"
    ]


async def test_cookies_can_be_those_of_the_user(bench: HttpBench) -> None:
    """They stay from one of its iterations to the next, and are not those of another one."""
    ann, bob = CookieJar(), CookieJar()
    for lines, cookies in ((1, ann), (2, ann), (1, bob)):
        http = bench.begin(user_cookies=cookies)
        http.keep_cookies()
        assert await http.post("/cart").json("/lines") == lines


async def test_outside_of_iterations_what_is_not_ok_raises(bench: HttpBench) -> None:
    """There is no iteration that could fail; nothing is counted, and there is no index."""
    http = Http(bench.client, Scope())
    assert (await http.get("/")).status == 200
    with pytest.raises(RequestError, match=r"^GET /status/500: status 500$") as caught:
        await http.get("/status/500")
    assert caught.value.response is not None
    with pytest.raises(ValueError, match=r"\{i\} in it, which there is only in an iteration"):
        await http.get("/{i}")
    assert http.index is None


async def test_anything_can_be_recorded_under_a_name(bench: HttpBench) -> None:
    """Requests within count by themselves; what fails makes the iteration fail."""
    http = bench.begin()
    async with record("both"):
        await http.get("/")
    with record("plain"):
        pass
    assert [(counted.name, counted.outcome) for counted in bench.read()] == [
        ("GET /", "ok"), ("both", "ok"), ("plain", "ok"),
    ]  # fmt: skip
    with pytest.raises(RequestError):
        async with record("both"):
            await http.get("/hang-up", name="page")
    [_, counted] = bench.read()
    assert (counted.name, counted.outcome) == ("both", "failed_check")
    assert counted.reason == "page: the server hung up"


async def test_the_base_url_may_have_a_path(build: BuildBench, shop: Shop) -> None:
    """Paths are behind it; whole URLs go where they say."""
    http = build(base_url=f"{shop.url}/echo/v1").begin()
    assert http.base_url == f"{shop.url}/echo/v1"
    assert (await http.get("/a").json("/target")) == "/echo/v1/a"
    assert (await http.get(f"{shop.url}/echo/b").json("/target")) == "/echo/b"
