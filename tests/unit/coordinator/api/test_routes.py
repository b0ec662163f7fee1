import asyncio
import io
import itertools
import json
import logging
import re
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch
from tests.kit.coordinators.readiness import build_readiness
from tests.kit.coordinators.transactions import change, read
from tests.kit.nasty_headers import NASTY_HEADERS
from yarl import URL

from oku_coordinator.api.authentication import close_metrics
from oku_coordinator.api.routes import build_api
from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_standing
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.runs.readiness import QueueFullError
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.telemetry.prometheus.protobuf_format import CONTENT_TYPE
from oku_coordinator.telemetry.tick_maker import TickMaker
from oku_core.accounting.run_state import RunState
from oku_core.messaging.credentials import CredentialFault
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import CodeFile
from oku_core.summary.summary import Summary
from oku_core.summary.tick import Tick

TOKEN = "0123456789"
Client = TestClient[Any, Any]


class ObstacleTwin(Troubles):
    """The obstacle of a world."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def find_obstacle(self) -> str:
        """As it was set."""
        return self._world.obstacle


class World:
    """What stands behind the API."""

    def __init__(self, ledger: Ledger) -> None:
        counter, conditions = ServedCounter(NamedServers([]), ledger), build_readiness(ledger)
        self.runs = Runs(ledger, counter, LoopSignals(), BrokerTwin(), conditions)
        self.metrics = Metrics()
        self.obstacle = ""


@pytest.fixture
def world(ledger: Ledger) -> World:
    """A coordinator without a broker."""
    return World(ledger)


@pytest.fixture
async def client(world: World) -> AsyncIterator[Client]:
    """A client that bears the token."""
    api = build_api(world.runs, world.metrics, TOKEN, ObstacleTwin(world))
    async with TestClient(TestServer(api), headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield client


async def call(client: Client, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """The status and the JSON that a call answers."""
    response = await client.request(method, path, **options)
    assert response.content_type == "application/json"
    return response.status, await response.json()


async def submit(client: Client, **spec: Any) -> str:
    """Submit a run; gives its id."""
    status, document = await call(client, "POST", "/api/runs", json={"requests": 100, **spec})
    assert status == 201
    run: str = document["run"]
    return run


@pytest.mark.parametrize("is_closed", [False, True])
async def test_without_the_token_every_call_but_the_probes_is_refused(
    world: World, *, is_closed: bool
) -> None:
    """Whatever calls there are; `/metrics` is open unless it was closed."""
    api = build_api(world.runs, world.metrics, TOKEN, Troubles())
    if is_closed:
        close_metrics(api, TOKEN)
    routes = [(route.method, route.resource) for route in api.router.routes()]
    answered = set()
    async with TestClient(TestServer(api)) as client:
        for method, resource in routes:
            assert resource is not None
            path = resource.canonical.replace("{action}", "pause").format(run="r1", digest="0" * 64)
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                if (await client.request(method, path, headers=headers)).status != 401:
                    answered.add(path)
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/metrics", headers=right)).status == 200
    assert answered == {"/healthz", "/readyz"} | (set() if is_closed else {"/metrics"})


async def test_a_submitted_run_is_listed_and_shown(client: Client) -> None:
    """The list has the newest first, without specs, which may be large."""
    first = await submit(client, name="first")
    second = await submit(client, requests="1k", **{"expect-status": "2xx"})
    status, runs = await call(client, "GET", "/api/runs")
    assert (status, [run["run"] for run in runs]) == (200, [second, first])
    assert (runs[0]["state"], runs[0]["requests"], runs[0]["accounted"]) == ("pending", 1000, 0)
    assert (runs[0]["reason"], runs[1]["name"]) == ("", "first")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", runs[0]["created_at"])
    assert "spec" not in runs[0]
    status, summary = await call(client, "GET", f"/api/runs/{first}")
    assert (status, summary["run"], summary["state"]) == (200, first, "pending")
    assert msgspec.convert(summary, Summary).requests == 100


async def test_a_run_has_its_tables_as_json(client: Client) -> None:
    """Those of its summary; a phase that it does not have is named."""
    run = await submit(client)
    status, tables = await call(client, "GET", f"/api/runs/{run}/tables")
    assert (status, [table["name"] for table in tables]) == (200, ["figures", "outcomes"])
    assert tables[1]["rows"][0]["cells"][1] == {"text": "0", "value": 0}
    status, answer = await call(client, "GET", f"/api/runs/{run}/tables?phase=soak")
    assert (status, answer["error"]) == (404, f"phase: soak is not in run {run}, which has no phases")
    assert (await call(client, "GET", "/api/runs/none/tables"))[0] == 404


async def test_no_answer_shows_the_name_under_which_a_run_is_counted(client: Client, ledger: Ledger) -> None:
    """Not even to callers with the token: what they pass on may be read by others."""
    run = await submit(client)
    name = read(ledger, fetch_run, run).count_name
    shown = [await call(client, "POST", f"/api/runs/{run}/{action}") for action in ("pause", "resume")]
    for path in ("", f"/{run}", f"/{run}/history", f"/{run}/failures"):
        response = await client.get(f"/api/runs{path}")
        assert response.status == 200
        shown.append((200, await response.text()))
    assert name
    assert name not in str(shown)


async def test_user_code_is_refused_in_one_line(client: Client, ledger: Ledger) -> None:
    """The line names the value of the chart; a run that was allowed once is not begun again, either."""
    scenario = f"scenario.py@sha256:{'0' * 64}:10:scenario.py"
    refused = await call(client, "POST", "/api/runs", json={"engine": "python", "scenario": scenario})
    assert refused[0] == 403
    assert "allowUserCode: true" in refused[1]["error"]
    assert "\n" not in refused[1]["error"]
    assert (await call(client, "GET", "/api/runs"))[1] == []
    spec = Spec(engine=Engine.PYTHON, scenario=CodeFile(scenario))
    change(ledger, create_run, "before", spec, 0.0)
    change(ledger, change_state, "before", RunState.PAUSED, 1.0)
    for action in ("resume", "retry"):
        assert await call(client, "POST", f"/api/runs/before/{action}") == refused
    assert read(ledger, fetch_run, "before").state == RunState.PAUSED


async def test_a_retry_may_be_of_some_failures(client: Client) -> None:
    """The query says which; an outcome that requests cannot fail with is refused."""
    run = await submit(client)
    await call(client, "POST", f"/api/runs/{run}/pause")
    for query, text in (
        ("outcome=ok", "outcome: ok is not one of unexpected_status, timeout"),
        ("target=x", f"--target: x is not in run {run}, which has no target with a name"),
        ("reason=status+500&reason=other", f"run {run} has no failed request of these to retry"),
    ):
        status, document = await call(client, "POST", f"/api/runs/{run}/retry?{query}")
        assert (status, document["error"][: len(text)]) == (400, text)


async def test_runs_are_listed_in_pages(client: Client) -> None:
    """Each answer says where the next one is, and none is large, however large specs are."""
    ids = [await submit(client, body="x" * 100_000, method="POST") for _ in range(7)]
    path, seen, sizes = "/api/runs?limit=3", [], []
    while path:
        response = await client.get(path)
        text = await response.text()
        sizes.append(len(text))
        seen += [run["run"] for run in json.loads(text)]
        following = response.links.get("next")
        path = URL(following["url"]).raw_path_qs if following else ""
    assert seen == ids[::-1]
    assert max(sizes) < 2000
    assert len(sizes) == 3


async def test_runs_are_found_by_what_stands_for_them(client: Client) -> None:
    """The pages of those that are found hold no others."""
    await submit(client)
    named = [await submit(client, name="nightly run") for _ in range(3)]
    other = await submit(client)
    for reference, found in ((other, [other]), ("latest", [other]), (other[-6:], [other]), ("nope", [])):
        _, runs = await call(client, "GET", f"/api/runs?run={reference}")
        assert [run["run"] for run in runs] == found
    path, seen = "/api/runs?run=nightly%20run&limit=2", []
    while path:
        response = await client.get(path)
        seen += [run["run"] for run in await response.json()]
        following = response.links.get("next")
        path = URL(following["url"]).raw_path_qs if following else ""
    assert seen == named[::-1]


async def test_a_run_is_deleted(client: Client, world: World) -> None:
    """It must be at rest, and can be deleted only once."""
    run = await submit(client)
    status, document = await call(client, "DELETE", f"/api/runs/{run}")
    assert (status, document["error"]) == (
        409, f"run {run} is pending; it cannot be deleted before it is paused or over"
    )  # fmt: skip
    await call(client, "POST", f"/api/runs/{run}/cancel")
    response = await client.delete(f"/api/runs/{run}")
    assert (response.status, await response.read()) == (204, b"")
    assert (await call(client, "DELETE", f"/api/runs/{run}"))[0] == 404
    assert (await call(client, "GET", f"/api/runs/{run}"))[0] == 404
    assert (await call(client, "GET", "/api/runs")) == (200, [])


async def test_a_wrong_page_is_refused(client: Client) -> None:
    """The error is one line."""
    no_cursor = "is not a cursor from a list of runs"
    empty = "run: is empty; give latest, an id, a name, or a part of an id"
    refusals = {
        **{f"limit={text}": f"limit: {text} is not between 1 and 1000" for text in ("0", "1001", "x")},
        **{f"after={text}": f"after: {text} {no_cursor}" for text in ("x", "1.0_x")},
        "run=": empty,
        "run=%20": empty,
        "run=%00": "run: '\\x00' is not printable text",
    }
    answers = {query: await call(client, "GET", f"/api/runs?{query}") for query in refusals}
    assert answers == {query: (400, {"error": text}) for query, text in refusals.items()}


async def test_the_target_of_a_listed_run_has_no_secrets(client: Client) -> None:
    """It has scheme, host, port and path, and nothing of what may stand before and after them."""
    await submit(client, url="http://user:pass@example.org:8080/{i}?key=abc")
    _, runs = await call(client, "GET", "/api/runs")
    assert (runs[0]["target"], runs[0]["engine"]) == ("http://example.org:8080/{i}?…", "httptools")


async def test_the_history_of_a_run_is_told(client: Client) -> None:
    """It has the summary and all that is kept beside it."""
    run = await submit(client, name="kept")
    status, document = await call(client, "GET", f"/api/runs/{run}/history")
    assert (status, document["summary"]["run"], document["spec"]["name"]) == (200, run, "kept")
    assert document["slices"] == [[0, 100, "pending"]]
    assert (await call(client, "GET", "/api/runs/nope/history"))[0] == 404


async def test_a_run_is_told_what_to_do(client: Client) -> None:
    """The answer is the run as it is then."""
    for action, state in (("pause", "paused"), ("cancel", "cancelled"), ("resume", "pending")):
        run = await submit(client)
        status, document = await call(client, "POST", f"/api/runs/{run}/{action}")
        assert (status, document["run"], document["state"]) == (202, run, state)


@pytest.mark.parametrize(("query", "status"), [("now=true", 202), ("now=false", 202), ("now=yes", 400)])
async def test_a_run_is_cancelled_at_once_if_asked_so(client: Client, query: str, status: int) -> None:
    """What is neither true nor false is refused, and the run goes on."""
    run = await submit(client)
    answer = await call(client, "POST", f"/api/runs/{run}/cancel?{query}")
    assert answer[0] == status
    if status == 400:
        assert answer[1] == {"error": "now: yes is not true or false"}
        assert (await call(client, "GET", f"/api/runs/{run}"))[1]["state"] == "pending"


async def test_every_call_needs_the_token(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Without the token nothing is done and nothing is revealed, not even which runs exist."""
    calls = [("POST", "/api/runs"), ("GET", "/api/runs"), ("GET", "/api/runs/r1/ticks"), ("GET", "/nowhere")]
    values = (
        None, "", "Bearer", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}0", "Bearer ö",
    )  # fmt: skip
    wrong = []
    for (method, path), value in itertools.product(calls, values):
        caplog.clear()
        api = build_api(world.runs, metrics := Metrics(), TOKEN, Troubles())
        headers = {} if value is None else {"Authorization": value}
        async with TestClient(TestServer(api)) as stranger:
            answer = await call(stranger, method, path, headers=headers, json={"requests": 1})
        [line] = caplog.messages
        reason = line.removeprefix("a call from 127.0.0.1 is refused: its token is ").partition(" ")[0]
        refused = f'oku_callers_refused_total{{credential="token",reason="{CredentialFault(reason)}"}} 1.0'
        is_counted = refused in metrics.expose()[0].decode().splitlines()
        if (
            answer != (401, {"error": "the token is missing or wrong"})
            or not is_counted
            or (value or "-") in line
        ):
            wrong.append((method, path, value, answer, line))
    assert not wrong
    assert world.runs.fetch_page(10, "") == []


async def test_a_token_that_is_not_text_is_wrong(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """A header may carry any bytes."""
    server = client.server
    assert server is not None
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(b"GET /api/runs HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")
    status, *_ = await reader.readline(), await reader.read()
    writer.close()
    await writer.wait_closed()
    assert b" 401 " in status
    assert caplog.messages == ["a call from 127.0.0.1 is refused: its token is wrong (GET /api/runs)"]


async def test_probes_and_metrics_are_open(world: World) -> None:
    """The kubelet and Prometheus bear no token."""
    api = build_api(world.runs, world.metrics, TOKEN, ObstacleTwin(world))
    async with TestClient(TestServer(api)) as stranger:
        statuses = [(await stranger.get(path)).status for path in ("/healthz", "/readyz", "/metrics")]
        assert statuses == [200, 200, 200]
        assert "oku_workers" in await (await stranger.get("/metrics")).text()
        world.obstacle = "the ledger cannot be used: its disk is full"
        assert await (await stranger.get("/readyz")).text() == f"{world.obstacle}\n"
        statuses = [(await stranger.get(path)).status for path in ("/healthz", "/readyz", "/metrics")]
        assert statuses == [200, 503, 200]


async def test_metrics_are_protobuf_for_those_who_accept_it(world: World) -> None:
    """Several headers count as one; without any it is text."""
    api = build_api(world.runs, world.metrics, TOKEN, Troubles())
    async with TestClient(TestServer(api)) as scraper:
        accepted = [("Accept", "text/plain;q=0.5"), ("Accept", f"{CONTENT_TYPE};q=0.6")]
        answer = await scraper.get("/metrics", headers=accepted)
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        assert (await answer.read()).count(b"oku_workers") == 1
        assert (await scraper.get("/metrics")).content_type == "text/plain"


DEEP = 90_000
BODIES = {
    b"": "the body: is not JSON: Expecting value: line 1 column 1 (char 0)",
    b"requests: 5": "the body: ",
    b"[" * DEEP: "the body: is nested too deep",
    b'{"url":' * DEEP + b"1" + b"}" * DEEP: "the body: is nested too deep",
    b'{"requests":' + b"9" * DEEP + b"}": f"the body: a number has {DEEP} digits; at most 400 are allowed",
    b'{"timeout": 1e999}': "the body: 1e999 is too large for a number",
    b'{"timeout": NaN}': "the body: is not JSON: NaN is not a number",
    b"\xff": "the body: is not UTF-8",
    b'{"name": "\xff"}': "the body: is not UTF-8",
    b'{"requests": 1, "requests": 2}': "the body: requests: is given twice",
    b'{"header": {"A": "1", "A": "2"}}': "the body: A: is given twice",
    b"[]": "the body is not a JSON object",
    b'"text"': "the body is not a JSON object",
    b'{"requests": 0}': "spec: requests: 0 is not at least 1",
    b'{"reqests": 5}': "spec: reqests: unknown key, did you mean requests?",
    b'{"proofs": ["a"]}': "proofs: is not an object with a proof for each digest",
    b'{"proofs": {"a": "b"}}': "proofs: a is not a SHA-256 in hexadecimal",
    b'{"proofs": {"%b": 7}}' % (b"0" * 64): f"proofs: the proof of {'0' * 64} is not an HMAC-SHA-256",
    b'{"requests": null}': "spec: requests: null is not a number",
    b'{"url": "example.org"}': "spec: url: example.org has no scheme",
    b'{"url": "http://h/", "expect-match": "(?=a)"}': "spec: expect-match: (?=a) is not a regular expression",
    b'{"url": "http://h/", "expect-match": "%b"}' % (b"(a|b)" * 170_000): "spec: expect-match: '(a|b)",
}
"""Wrong bodies, and how the answers begin."""


async def test_a_wrong_body_is_answered_in_one_sentence(client: Client) -> None:
    """It names the place, the value and what is allowed; nothing is entered."""
    wrong = []
    for body, said in BODIES.items():
        status, document = await call(client, "POST", "/api/runs", data=body)
        error = document["error"]
        if status != 400 or not error.startswith(said) or "\n" in error:
            wrong.append((body[:60], status, error[:200]))
    assert not wrong
    assert await call(client, "GET", "/api/runs") == (200, [])


async def test_a_spec_is_read_outside_the_event_loop(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its patterns may take seconds to compile; others are answered meanwhile."""
    has_answered = threading.Event()

    def read_slowly(source: Source) -> Spec:
        assert has_answered.wait(10)
        return parse_spec(source)

    monkeypatch.setattr("oku_coordinator.api.routes.parse_spec", read_slowly)
    submitting = asyncio.ensure_future(submit(client, **{"expect-match": "a+", "url": "http://h/"}))
    assert (await client.get("/healthz")).status == 200
    has_answered.set()
    await submitting


async def test_the_charset_of_a_body_does_not_matter(client: Client) -> None:
    """JSON is UTF-8 whatever the header says, and may begin with a byte order mark, as Windows writes it."""
    headers = {"Content-Type": "application/json; charset=nonsense"}
    for body in (b'{"requests": 5}', b'\xef\xbb\xbf{"requests": 5}'):
        assert (await call(client, "POST", "/api/runs", data=body, headers=headers))[0] == 201


async def test_a_body_has_its_limit(client: Client) -> None:
    """A spec is short."""
    status, document = await call(client, "POST", "/api/runs", data=io.BytesIO(b" " * (1 << 20) + b"{}"))
    assert status == 413
    assert document["error"].startswith("POST /api/runs: ")


@pytest.mark.parametrize(
    ("method", "call_path"),
    [
        ("GET", "/api/runs/r9"),
        ("GET", "/api/runs/r9/ticks"),
        ("POST", "/api/runs/r9/pause"),
        ("POST", "/api/runs/r9/resume"),
        ("POST", "/api/runs/r9/cancel"),
    ],
)
async def test_an_unknown_run_is_named(client: Client, method: str, call_path: str) -> None:
    """It is told before a stream begins, too."""
    assert await call(client, method, call_path) == (404, {"error": "there is no run r9"})


async def test_an_unknown_call_is_named(client: Client) -> None:
    """The answer is JSON like every other error."""
    assert await call(client, "GET", "/nowhere") == (404, {"error": "GET /nowhere: Not Found"})
    assert await call(client, "DELETE", "/api/runs") == (
        405,
        {"error": "DELETE /api/runs: Method Not Allowed"},
    )
    run = await submit(client)
    status, _ = await call(client, "POST", f"/api/runs/{run}/explode")
    assert status == 404


async def test_what_cannot_be_is_a_conflict(client: Client) -> None:
    """A run that is over does not go on."""
    run = await submit(client)
    await call(client, "POST", f"/api/runs/{run}/cancel")
    status, document = await call(client, "POST", f"/api/runs/{run}/resume")
    assert status == 409
    assert document == {"error": f"run {run} is cancelled, it cannot become pending"}


async def test_a_ledger_that_cannot_be_written_is_said(
    client: Client, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller may try again; what is logged of it is not logged with each call."""
    read(ledger, lambda transaction: transaction.execute("PRAGMA query_only = ON"))
    status, document = await call(client, "POST", "/api/runs", json={"requests": 1})
    assert status == 503
    assert document == {"error": f"the ledger cannot be used: {ledger.storage.trouble}"}
    assert "attempt to write a readonly database" in document["error"]
    assert not caplog.records


async def test_a_fault_of_ours_is_said_without_its_insides(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are in the log."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(world.runs, "fetch_page", fail)
    status, document = await call(client, "GET", "/api/runs")
    assert status == 500
    assert "secret" not in document["error"]
    assert "ZeroDivisionError: secret" in caplog.text


async def test_a_run_that_does_not_balance_can_be_shown(
    client: Client, path: Path, ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Stopping it says why it has failed, and its summary has that, too."""
    apply([make_batch(deal())], 5.0)
    intruder = sqlite3.connect(path, isolation_level=None)
    intruder.execute("UPDATE workers SET requests = 9")
    intruder.close()
    status, document = await call(client, "POST", "/api/runs/r1/pause")
    reason = "the workers' requests sum to 9, but 10 are accounted"
    assert (status, document) == (500, {"error": f"run r1 does not balance: {reason}"})
    status, summary = await call(client, "GET", "/api/runs/r1")
    assert (status, summary["state"]) == (200, "failed")
    assert reason in [validity["detail"] for validity in summary["validity"]]
    _, (run,) = await call(client, "GET", "/api/runs")
    assert (run["state"], run["reason"]) == ("failed", reason)


def build_tick(ledger: Ledger, run: str) -> Tick:
    """A second of a run."""
    standing = read(ledger, fetch_standing, run)
    return TickMaker(standing.record.run).build_tick(standing, workers=1, now=0.0)


async def wait_for_follower(world: World) -> None:
    """Let the server come to the point at which it waits for ticks."""
    while not world.runs.followers.runs:  # noqa: ASYNC110  # it tells nobody when it does
        await asyncio.sleep(0)


async def read_event(response: Any) -> tuple[str, bytes]:
    """The next event of a stream, and its data."""
    event, data, blank = [await response.content.readline() for _ in range(3)]
    assert blank == b"\n"
    assert event.startswith(b"event: ")
    assert data.startswith(b"data: ")
    return event[7:].strip().decode(), data[6:]


async def test_the_ticks_of_a_run_end_with_its_summary(client: Client, world: World, ledger: Ledger) -> None:
    """They are server-sent events; the stream ends with `end` when the run comes to rest."""
    run = await submit(client)
    response = await client.get(f"/api/runs/{run}/ticks")
    assert (response.status, response.content_type) == (200, "text/event-stream")
    await wait_for_follower(world)
    tick = build_tick(ledger, run)
    world.runs.followers.publish(tick)
    assert await read_event(response) == ("tick", msgspec.json.encode(tick) + b"\n")
    world.runs.cancel(run)
    event, data = await read_event(response)
    summary = msgspec.json.decode(data, type=Summary)
    assert (event, summary.run, summary.state) == ("end", run, RunState.CANCELLED)
    assert await response.content.read() == b""


async def test_the_stream_of_a_run_at_rest_is_its_summary(client: Client) -> None:
    """There is nothing to wait for."""
    run = await submit(client)
    await call(client, "POST", f"/api/runs/{run}/pause")
    response = await client.get(f"/api/runs/{run}/ticks")
    assert (await read_event(response))[0] == "end"
    assert await response.content.read() == b""


async def test_a_follower_may_leave(
    client: Client, world: World, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is kept for it, and nothing goes wrong."""
    run = await submit(client)
    with caplog.at_level(logging.WARNING):
        response = await client.get(f"/api/runs/{run}/ticks")
        await wait_for_follower(world)
        response.close()
        while world.runs.followers.runs:
            world.runs.followers.announce_rest()
            world.runs.followers.publish(build_tick(ledger, run))
            await asyncio.sleep(0)
    assert caplog.records == []


async def test_followers_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is told to come again, until one has left."""
    monkeypatch.setattr("oku_coordinator.api.responses.MOST_FOLLOWERS", 2)
    monkeypatch.setattr("oku_coordinator.runs.followers.SILENCE_S", 0.02)
    path = f"/api/runs/{await submit(client)}/ticks"
    first, second = await client.get(path), await client.get(path)
    assert (first.status, second.status) == (200, 200)
    status, document = await call(client, "GET", path)
    assert (status, document) == (503, {"error": "2 callers already follow runs, which is the limit"})
    first.close()
    async with asyncio.timeout(10):
        while (third := await client.get(path)).status != 200:  # noqa: ASYNC110  # it is asked anew
            await asyncio.sleep(0)
    third.close()
    second.close()


NASTY = [
    "", "x", "-1", "+1", "1_000", "1.5", "1e3", "1e999", "nan", "inf", "٣", "²", "9" * 19, "9" * 20,
    "9" * 5000, " 1", "億", "\0", "a\nb", "\x7f", "\x85", "'", '"', "%", "..", "a/b", "*", "latest", "1_1",
    "nan_1", "inf_1", "-inf_1", "1.0_-1", "1.0_ 1", "1.0_٣", "1.0_1_1", "01.0_1", "1e0_1",
    "1_99999999999999999999", f"1.0_{2**63}", "1.0_" + "9" * 5000,
]  # fmt: skip
RAW = ["%FF", "%ED%A0%80", "%00", "%2e%2e", "%", "%zz", "+", "%F0%9F%98%80", "%E2%80%AE"]
"""What is no text, or no printable one, as it stands in a URL."""
PLACES = [
    ("GET", "/api/runs?after={}"), ("GET", "/api/runs?limit={}"), ("GET", "/api/runs?run={}"),
    ("GET", "/api/runs/{}"), ("GET", "/api/runs/{}/history"), ("GET", "/api/runs/{}/failures"),
    ("GET", "/api/runs/{}/ticks"), ("POST", "/api/runs/{}/retry"), ("POST", "/api/runs/{}/pause"),
    ("POST", "/api/runs/{}/resume"), ("POST", "/api/runs/{}/cancel"), ("POST", "/api/runs/r/{}"),
    ("POST", "/api/runs/r/cancel?now={}"), ("DELETE", "/api/runs/{}"), ("GET", "/api/{}"),
]  # fmt: skip


async def test_whatever_stands_in_a_url_the_caller_is_to_blame(client: Client) -> None:
    """It is never an error of Oku, and each answer is one line."""
    await submit(client)
    wrong = []
    for method, place in PLACES:
        for text in [*(quote(text, safe="") for text in NASTY), *RAW]:
            response = await client.request(method, URL(place.format(text), encoded=True))
            answer = await response.read()
            if response.status >= 500 or (response.status >= 400 and b"\n" in answer.strip()):
                wrong.append((method, place, text[:40], response.status, answer[:200]))
    assert not wrong


async def test_whatever_stands_in_a_header_the_caller_is_to_blame(client: Client) -> None:
    """It is never an error of Oku, and the connection stays."""
    wrong = []
    read_here = ("Accept", "Accept-Encoding", "Content-Type")
    headers = [header for header in NASTY_HEADERS if header[0] in read_here]
    headers += [("Authorization", value) for name, value in headers if name == "Accept"]
    for name, value in headers:
        for method, path in (("GET", "/metrics"), ("POST", "/api/runs")):
            response = await client.request(method, path, headers={name: value}, data=b"{}")
            if response.status >= 500:
                wrong.append((name, value[:60], path, response.status))
    assert not wrong


def bear(key: str) -> dict[str, str]:
    """The headers of a call with a key."""
    return {"Idempotency-Key": key}


async def test_a_spec_is_submitted_once_for_its_key(client: Client, ledger: Ledger) -> None:
    """Later calls get the run as it is, in whatever form the key and the spec come."""
    status, first = await call(client, "POST", "/api/runs", json={"requests": "1k"}, headers=bear("k1"))
    assert (status, first["state"]) == (201, "pending")
    change(ledger, change_state, first["run"], RunState.PAUSED, 1.0)
    for key in ("k1", '"k1"'):
        status, again = await call(client, "POST", "/api/runs", json={"requests": 1000}, headers=bear(key))
        assert (status, again["run"], again["state"]) == (200, first["run"], "paused")
    assert (await call(client, "POST", "/api/runs", json={"requests": 1000}, headers=bear("k2")))[0] == 201
    assert (await call(client, "POST", "/api/runs", json={"requests": 1000}))[0] == 201
    assert len(read(ledger, fetch_runs)) == 3


async def test_calls_with_one_key_at_the_same_moment_make_one_run(
    client: Client, world: World, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while what takes long is checked for both of them."""
    admitting, both_are_there = 0, asyncio.Event()

    async def admit(*_: object) -> None:
        nonlocal admitting
        admitting += 1
        if admitting == 2:
            both_are_there.set()
        await both_are_there.wait()

    monkeypatch.setattr(world.runs, "admit", admit)
    answers = await asyncio.gather(
        *(call(client, "POST", "/api/runs", json={"requests": 5}, headers=bear("k1")) for _ in range(2))
    )
    assert sorted(status for status, _ in answers) == [200, 201]
    assert {answer["run"] for _, answer in answers} == {row.run for row in read(ledger, fetch_runs)}


async def test_a_wrong_key_is_refused_in_one_line(client: Client, ledger: Ledger) -> None:
    """Nothing is submitted."""
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    for headers in (bear(""), bear("a b"), bear('"'), bear("x" * 256), twice):
        status, answer = await call(client, "POST", "/api/runs", json={"requests": 5}, headers=headers)
        assert status == 400, headers
        assert re.fullmatch(r"Idempotency-Key: .* is not a key of 1 to 255 [^\n]*", answer["error"])
    assert read(ledger, fetch_runs) == []


async def test_a_deleted_run_is_answered_with_its_summary(client: Client, ledger: Ledger) -> None:
    """Its key sends nothing again."""
    run = (await call(client, "POST", "/api/runs", json={"requests": 5}, headers=bear("k1")))[1]["run"]
    change(ledger, change_state, run, RunState.CANCELLED, 1.0, "enough")
    summary = (await call(client, "GET", f"/api/runs/{run}"))[1]
    assert (await client.delete(f"/api/runs/{run}")).status == 204
    for _ in range(2):
        gone = await call(client, "POST", "/api/runs", json={"requests": 5}, headers=bear("k1"))
        assert gone == (
            410,
            {"error": f"run {run}, which has the key k1, was deleted", "summary": summary},
        )
    assert (await call(client, "POST", "/api/runs", json={"requests": 6}, headers=bear("k1")))[0] == 422
    assert read(ledger, fetch_runs) == []


async def test_a_known_run_needs_no_room_in_the_queue(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused to new runs is not checked again for a run that was submitted."""
    answer = (await call(client, "POST", "/api/runs", json={"requests": 5}, headers=bear("k1")))[1]

    async def admit(*_: object) -> None:
        raise QueueFullError(1, 1)

    monkeypatch.setattr(world.runs, "admit", admit)
    again = await call(client, "POST", "/api/runs", json={"requests": 5}, headers=bear("k1"))
    assert (again[0], again[1]["run"]) == (200, answer["run"])
    assert (await call(client, "POST", "/api/runs", json={"requests": 5}, headers=bear("k2")))[0] == 429
