import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer
from tests.kit.runs.begun_run import build_begun
from tests.unit.cli.follow.test_follower import SUMMARY

from oku_cli.backends.client import Client, RunGoneError, UploadNeededError
from oku_cli.backends.coordinator_ref import Endpoint, UnreachableError
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.values.file_reference import FileClaim


async def answer(request: web.Request) -> web.StreamResponse:
    """A coordinator that answers by the name of the run."""
    if request.headers.get("Authorization") != "Bearer right":
        return web.json_response({"error": "the token is missing or wrong"}, status=401)
    match request.match_info.get("run"):
        case "odd":
            return web.Response(text="<html>", status=404)
        case "down":
            return web.json_response({"error": "later"}, status=503)
        case None:
            return web.json_response([{"run": "a"}])
        case _:
            return web.json_response({"error": "there is no run"}, status=404)


async def answer_lines(request: web.Request) -> web.StreamResponse:
    """A coordinator that sends lines in pieces that end anywhere."""
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in (b"on", b"e\ntwo\nth", b"r", b"ee\n", b"\nfi", b"ve\n"):
        await response.write(piece)
    return response


@pytest.fixture
async def server() -> AsyncIterator[BaseTestServer]:
    """That coordinator, listening."""
    application = web.Application()
    application.router.add_get("/api/runs", answer)
    application.router.add_get("/api/runs/{run}", answer)
    application.router.add_get("/api/runs/{run}/failures", answer_lines)
    async with TestServer(application) as listening:
        yield listening


def build_client(server: BaseTestServer, token: str = "right") -> Client:
    """A client of it."""
    return Client(Endpoint(str(server.make_url("")).rstrip("/"), token))


async def test_lines_are_whole_wherever_pieces_end(server: BaseTestServer) -> None:
    """A line may come in many pieces, and a piece may have many lines."""
    async with build_client(server) as client:
        lines = [line async for line in client.read_failures("x")]
    assert lines == [b"one", b"two", b"three", b"", b"five"]


@pytest.mark.parametrize(
    ("run", "token", "message"),
    [
        ("x", "wrong", "the token is missing or wrong"),
        ("x", "right", "there is no run"),
        ("odd", "right", "this is not a coordinator of Oku"),
    ],
)
async def test_what_the_caller_did_wrong_is_one_line(
    server: BaseTestServer, run: str, token: str, message: str
) -> None:
    """It uses the coordinator's own words where there are any."""
    async with build_client(server, token) as client:
        with pytest.raises(UserError, match=message):
            await client.fetch_summary(run)


class Shut(Endpoint):
    """A coordinator that cannot be reached."""

    def find_trouble(self) -> str:
        """Say why."""
        return "the tunnel is shut"


async def test_what_may_pass_is_told_apart(server: BaseTestServer) -> None:
    """A coordinator that is failing or absent can be asked again; the cause, such as a broken tunnel, is
    named.
    """
    async with build_client(server) as client:
        with pytest.raises(UnreachableError, match="later"):
            await client.fetch_summary("down")
    async with Client(Endpoint("http://127.0.0.1:9", "t")) as client:
        with pytest.raises(UnreachableError, match="the coordinator does not answer"):
            await client.fetch_runs()
    endpoint = Shut("http://127.0.0.1:9", "t")
    async with Client(endpoint) as client:
        with pytest.raises(UnreachableError) as caught:
            await client.fetch_runs()
    assert str(caught.value) == "http://127.0.0.1:9: the coordinator does not answer: the tunnel is shut"


async def test_an_open_client_bears_the_token(server: BaseTestServer) -> None:
    """The call returns the coordinator's answer; using a client before `async with` is a mistake of the
    caller's.
    """
    async with build_client(server) as client:
        assert await client.fetch_runs() == [{"run": "a"}]
    with pytest.raises(RuntimeError, match="not open"):
        await build_client(server).fetch_runs()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    "content",
    [b"<html>", b"[" * 100_000, b"\xff", b"null", b"[]", b'{"run": 1}', b'{"state": "pausing"}', b""],
)
async def test_what_is_no_answer_of_a_coordinator_is_one_line(content: bytes) -> None:
    """Another program listens there, or another version of Oku."""

    async def say(_: web.Request) -> web.Response:
        return web.Response(body=content, content_type="application/json")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", say)
    async with TestServer(application) as server, build_client(server) as client:
        for call in (
            client.fetch_summary("r"),
            client.pause("r"),
            client.submit({}),
            client.fetch_file(FileClaim("d", "p")),
        ):
            with pytest.raises(UserError, match="this version of oku cannot read the answer: ") as caught:
                await call
            assert len(str(caught.value).splitlines()) == 1


SUBMISSIONS: dict[str, tuple[int, dict[str, object]]] = {
    '"new"': (201, {"run": "r1", "state": "pending", "engine": "httptools"}),
    '"known"': (200, {"run": "r1", "state": "paused", "engine": "httptools"}),
    '"taken"': (422, {"error": "another spec"}),
    '"files"': (424, {"error": "upload ca.pem first"}),
    '"deleted by another Oku"': (410, {"error": "r1 was deleted", "summary": {"run": "r1"}}),
    '"deleted"': (410, {"error": "r1 was deleted", "summary": msgspec.to_builtins(SUMMARY)}),
}


async def take_spec(request: web.Request) -> web.Response:
    """A coordinator that answers by the key; without one, the run is new."""
    assert (await request.json())["proofs"] == {}
    status, answer = SUBMISSIONS[request.headers.get("Idempotency-Key", '"new"')]
    return web.json_response(answer, status=status)


async def test_a_submission_with_a_key_says_whether_its_run_is_new() -> None:
    """The key stands in quotes, as the draft of the header has it; what else may come is told apart."""
    application = web.Application()
    application.router.add_post("/api/runs", take_spec)
    async with TestServer(application) as server, build_client(server) as client:
        assert (await client.submit({})).run == "r1"
        assert await client.submit_once({}, (), "new") == (build_begun(), True)
        assert await client.submit_once({}, (), "known") == (build_begun(RunState.PAUSED), False)
        with pytest.raises(UserError, match="another spec"):
            await client.submit_once({}, (), "taken")
        with pytest.raises(UploadNeededError, match=r"upload ca\.pem first"):
            await client.submit_once({}, (), "files")
        with pytest.raises(RunGoneError, match="r1 was deleted") as deleted:
            await client.submit_once({}, (), "deleted")
        assert deleted.value.summary == SUMMARY
        with pytest.raises(UserError, match="this version of oku cannot read the answer"):
            await client.submit_once({}, (), "deleted by another Oku")
