"""A redirection that leads nowhere is the same with every client that follows redirections."""

from pathlib import Path

import pytest
from tests.kit.scenarios.http_bench import HttpBench
from tests.kit.servers.hostile_server import Exchange, HostileServer, Serve, build_response
from tests.kit.workers.engine_worker import EngineWorker, count
from tests.kit.workers.locust_bench import LocustBench, count_outcomes, count_requests, list_reasons

from oku import RequestError
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

LOCATIONS = {
    "loop": "/loop",
    "there": "/back",
    "back": "/there",
    "ftp": "ftp://127.0.0.1/",
    "mail": "mailto:nobody@localhost",
    "script": "javascript:alert(1)",
    "bracket": "http://[::1",
    "port": "http://127.0.0.1:99999/",
    "blank": "http://a b/",
}
"""Where a path leads to."""
REASONS = {
    "loop": "more than {most} redirections",
    "there": "more than {most} redirections",
    "ftp": "a redirection to a URL of ftp",
    "mail": "a redirection to a URL of mailto",
    "script": "a redirection to a URL of javascript",
    "bracket": "a redirection to what is not a URL",
    "port": "a redirection to what is not a URL",
    "blank": "a redirection to what is not a URL",
}
"""Why a request of a path ends."""


async def lead_nowhere(exchange: Exchange) -> None:
    """Send a request on as its path says."""
    location = LOCATIONS[exchange.request.target[1:]]
    await exchange.send(build_response("302 Found", b"on", f"Location: {location}"))


@pytest.fixture
async def site(serve: Serve) -> HostileServer:
    """A server of which no path leads anywhere."""
    return await serve(lead_nowhere)


@pytest.mark.parametrize("path", REASONS)
async def test_with_the_engine(site: HostileServer, worker: EngineWorker, path: str) -> None:
    """The one that follows any at all; it follows as many as the spec says."""
    spec = Spec(urls=(Url(f"{site.url}/{path}"),), max_redirects=7)
    account = await worker.run(spec, 3)
    assert count(account) == {"protocol_error": 3}
    assert [(each.reason, each.requests) for each in account.part.reasons] == [
        (REASONS[path].format(most=7), 3)
    ]


async def test_with_http_of_scenarios(site: HostileServer) -> None:
    """It follows ten."""
    bench = HttpBench(site.url)
    for path, reason in REASONS.items():
        with pytest.raises(RequestError, match=reason.format(most=10)):
            await bench.begin().get(f"/{path}", name=path)
    counted = {each.name: (each.outcome, each.reason) for each in bench.read()}
    bench.close()
    assert counted == {path: ("protocol_error", text.format(most=10)) for path, text in REASONS.items()}


@pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])
async def test_with_the_clients_of_locust(site: HostileServer, tmp_path: Path, kind: str) -> None:
    """Both follow thirty, as in Locust; each such request fails, and none raises into user code."""
    source = f"""
        from locust import {kind}, task

        paths = {list(REASONS)!r}

        class Visitor({kind}):
            @task
            def visit(self):
                path = paths[self.oku.index % len(paths)]
                self.client.get("/" + path, name=path)
        """
    async with LocustBench(tmp_path, source, site.url) as bench:
        execution = await bench.run(2 * len(REASONS))
    assert count_outcomes(execution) == {"failed_check": 2 * len(REASONS)}
    assert count_requests(execution) == {f"GET {path}": {"protocol_error": 2} for path in REASONS}
    reasons = {f"GET {path}: {text.format(most=30)}": 2 for path, text in REASONS.items()}
    assert list_reasons(execution) == reasons


def build_follower(kind: str) -> str:
    """A locustfile that follows no redirection."""
    return f"""
        from locust import {kind}, task

        class Visitor({kind}):
            @task
            def visit(self):
                with self.client.get("/ftp", allow_redirects=False, catch_response=True) as response:
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
    assert count_requests(execution) == {"GET /ftp": {"ok": 4}}
