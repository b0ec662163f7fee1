"""Redirections of Locust's users: what the spec says stays with its origin, and some are not followed."""

from pathlib import Path
from typing import Any

import pytest
from tests.kit.servers.certificates import Certificates, build_server_tls
from tests.kit.servers.hostile_server import Exchange, HostileServer, Serve, always, build_response
from tests.kit.workers.locust_bench import LocustBench, count_outcomes, count_requests, list_reasons

from oku_core.spec.values.request_content import Header

LOCATIONS = {"ftp": "ftp://127.0.0.1/", "mail": "mailto:nobody@localhost"}
"""Where a path leads to."""


async def lead_nowhere(exchange: Exchange) -> None:
    """Send a request on as its path says."""
    location = LOCATIONS[exchange.request.target[1:]]
    await exchange.send(build_response("302 Found", b"on", f"Location: {location}"))


@pytest.fixture
async def site(serve: Serve) -> HostileServer:
    """A server of which no path leads anywhere."""
    return await serve(lead_nowhere)


def build_follower(kind: str) -> str:
    """A locustfile that follows no redirection."""
    return f"""
        from locust import {kind}, task

        class Visitor({kind}):
            @task
            def visit(self):
                path = ("/ftp", "/mail")[self.oku.index % 2]
                with self.client.get(path, allow_redirects=False, catch_response=True) as response:
                    assert response.status_code == 302
        """


@pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])
async def test_one_that_is_not_to_be_followed_is_an_answer(
    site: HostileServer, tmp_path: Path, kind: str
) -> None:
    """Wherever it leads."""
    async with LocustBench(tmp_path, build_follower(kind), site.url) as bench:
        execution = await bench.run(4)
    assert count_outcomes(execution) == {"ok": 4}
    assert count_requests(execution) == {"GET /ftp": {"ok": 2}, "GET /mail": {"ok": 2}}


OK = build_response(body=b"hi")
SPEC_HEADERS = (
    Header("Authorization: Bearer spec"),
    Header("Cookie: session=spec"),
    Header("Host: spec.example"),
    Header("X-Api-Key: spec"),
    Header("X-Literal: {literal:spec}"),
    Header("X-Replaced: spec"),
)
STATUSES = (301, 302, 303, 307, 308)
LEAVER = """
    from locust import {kind}, task

    class Visitor({kind}):
        @task
        def visit(self):
            status = {statuses}[self.oku.index % 5]
            own = {{"X-Own": "own", "X-Replaced": "own"}}
            with self.client.get(f"/within/{{status}}", headers=own, catch_response=True) as response:
                assert response.status_code == 200, response.error
        """


class Journey:
    """Two origins: a request goes on within the first, to the second, within that, and back to the first."""

    def __init__(self, serve: Serve, host: str) -> None:
        self._serve, self._host = serve, host

    async def open(self) -> tuple[HostileServer, HostileServer]:
        """Both servers."""
        self._home = await self._serve(self._lead)
        self._other = await self._serve(self._lead, host=self._host)
        return self._home, self._other

    async def _lead(self, exchange: Exchange) -> None:
        _, place, status = exchange.request.target.split("/")
        other = f"http://{self._host}:{self._other.port}"
        following = {
            "within": f"/leave/{status}",
            "leave": f"{other}/there/{status}",
            "there": f"/beyond/{status}",
            "beyond": f"{self._home.url}/back/{status}",
        }
        if place in following:
            await exchange.send(build_response(f"{status} On", b"on", f"Location: {following[place]}"))
        else:
            await exchange.send(OK)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])
async def test_what_the_spec_says_stays_with_its_origin(
    serve: Serve, tmp_path: Path, kind: str, host: str
) -> None:
    """Also on the way back, and also a host. What the locustfile says goes on as these clients have it."""
    home, other = await Journey(serve, host).open()
    url = home.url.replace("://", "://me:secret@")
    source = LEAVER.format(kind=kind, statuses=STATUSES)
    async with LocustBench(tmp_path, source, url, headers=SPEC_HEADERS) as bench:
        execution = await bench.run(10)
    assert count_outcomes(execution) == {"ok": 10}, list_reasons(execution)
    within = [request for request in home.requests if "/back/" not in request.target]
    beyond = [request for request in (*home.requests, *other.requests) if request not in within]
    assert (len(within), len(beyond)) == (20, 30)
    for request in within:
        told = {name: request.header(name) for name in ("authorization", "host", "x-api-key", "x-literal")}
        assert told == {
            "authorization": ["Basic bWU6c2VjcmV0"], "host": ["spec.example"], "x-api-key": ["spec"],
            "x-literal": ["{spec}"],
        }  # fmt: skip
    for request in beyond:
        assert not [value for _, value in request.headers if "spec" in value or "Basic" in value], request
        assert request.header("host")[0].startswith(("127.0.0.1:", "localhost:"))
        assert (request.header("x-own"), request.header("x-replaced")) == (["own"], ["own"])


@pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])
async def test_a_certificate_of_the_spec_is_for_its_origin(serve: Serve, tmp_path: Path, kind: str) -> None:
    """Another origin could ask for it; one in clear text cannot, and is another origin, too."""
    files = Certificates(tmp_path)
    plain = await serve(always(OK))
    other = await serve(always(OK), tls=files.server)

    async def lead(exchange: Exchange) -> None:
        target = exchange.request.target
        place = other.url if target == "/other" else plain.url
        await exchange.send(OK if target == "/" else build_response("302 On", b"", f"Location: {place}/x"))

    home = await serve(lead, tls=build_server_tls(files.authority, "127.0.0.1", clients=files.authority))
    source = f"""
        from locust import {kind}, task

        class Visitor({kind}):
            @task
            def visit(self):
                self.client.get(["/", "/other", "/plain"][self.oku.index % 3], name="all")
        """
    fields: dict[str, Any] = {
        "cacert": str(files.cacert), "cert": str(files.both), "headers": SPEC_HEADERS
    }  # fmt: skip
    async with LocustBench(tmp_path, source, home.url, **fields) as bench:
        execution = await bench.run(6)
    assert count_requests(execution) == {"GET all": {"ok": 4, "protocol_error": 2}}
    [reason] = list_reasons(execution)
    assert reason.endswith("a redirection to another origin, which could ask for the client certificate")
    assert (other.received, plain.received) == (0, 2)
    assert not any("spec" in value for request in plain.requests for _, value in request.headers)
