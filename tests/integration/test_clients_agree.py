"""Every client of Oku makes the same of the same target, or the table says why it may make something else."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest
from tests.kit.clients.ask_all import Asking, resolve_names, with_limits
from tests.kit.clients.odd_target import ClientKind, ClientResult
from tests.kit.clients.odd_targets import DIFFERENT, TARGETS, TOO_LARGE, head
from tests.kit.clients.target_server import Ending, Reply, TargetPort, TargetServer
from tests.kit.scenarios.http_bench import HttpBench
from tests.kit.workers.engine_worker import EngineWorker, count

from oku import RequestError
from oku_core.messaging.lease import Lease
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.target import Target
from oku_core.spec.values.request_content import CLOSE
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.engine_registry import build_engine
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
Results = Mapping[ClientKind, Mapping[str, ClientResult]]
MANY = "x" * 20_000_000
HTTP1_ENGINES = pytest.mark.parametrize("engine", [Engine.AIOHTTP, Engine.HTTPTOOLS], ids=str)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    """Asks the targets."""
    return Asking(tmp_path_factory.mktemp("clients"), TARGETS)


@pytest.fixture(scope="module")
def results(asking: Asking) -> Results:
    """What each client makes of each target that it can ask."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        resolve_names(monkeypatch)
        return asyncio.run(asking.ask_all())


def find_difference(client: ClientKind, name: str) -> ClientResult | None:
    """What a client may make of a target, if it is something else than the others do."""
    return next((names[name] for names in DIFFERENT.get(client, {}).values() if name in names), None)


def find_right(client: ClientKind, name: str) -> ClientResult:
    """What a client has to make of a target."""
    target = TARGETS[name]
    return with_limits(find_difference(client, name) or target.result, target, client)


@pytest.mark.parametrize("client", ClientKind, ids=str)
def test_a_client_makes_the_same_of_each_target(results: Results, client: ClientKind) -> None:
    """Its outcome, its reason and its status, and what was sent for it: everything once."""
    found = results[client]
    right = {name: find_right(client, name) for name in found}
    wrong = {name: result for name, result in found.items() if result != right[name]}
    assert wrong == {name: right[name] for name in wrong}
    assert set(results[client]) == {name for name, target in TARGETS.items() if client in target.clients}


def test_auto_makes_the_same_as_aiohttp(results: Results, asking: Asking) -> None:
    """The engine that is chosen for a spec can ask its target, with the same outcome and reason."""
    right = {name: result[:2] for name, result in results[ClientKind.AIOHTTP].items()}
    assert {name: results[ClientKind(asking.chosen[name])][name][:2] for name in right} == right
    assert {*asking.chosen.values()} == {Engine.AIOHTTP, Engine.HTTPTOOLS}


def test_the_table_has_no_row_too_many() -> None:
    """A client that differs can ask the target, and makes something else of it; no name is there twice."""
    for client, reasons in DIFFERENT.items():
        names = [name for different in reasons.values() for name in different]
        assert len(names) == len(set(names))
        assert [name for name in names if client not in TARGETS[name].clients] == []
        assert [name for name in names if find_right(client, name) == TARGETS[name].result] == []


@pytest.fixture
def target() -> Iterator[TargetServer]:
    """One target that answers early, one that closes, and one that keeps its connections."""
    early = Reply((TOO_LARGE,), Ending.CLOSE, reads_body=False)
    closing = Reply((head(b"Connection: close"),), Ending.CLOSE)
    server = TargetServer({"early": {"": early}, "closing": {"": closing}}, {})
    yield server
    server.close()


@pytest.fixture
async def bench() -> AsyncIterator[HttpBench]:
    """`Http`."""
    bench = HttpBench()
    yield bench
    bench.close()


def build_url(target: TargetServer, name: str, port: TargetPort = TargetPort.PLAIN) -> str:
    """Where to ask."""
    return f"http://127.0.0.1:{target.ports[port]}/{name}/"


@HTTP1_ENGINES
async def test_an_early_answer_is_not_lost(
    target: TargetServer, worker: EngineWorker, engine: Engine
) -> None:
    """The end of the connection, which resets what is still being sent, comes right behind it."""
    url = Url(build_url(target, "early"))
    spec = Spec(urls=(url,), engine=engine, method="POST", body=MANY, concurrency=4, timeout_s=20.0)
    for _ in range(10):
        account = await worker.run(spec, 60)
        assert (count(account), account.part.statuses) == ({"unexpected_status": 60}, {"413": 60})


async def test_an_early_answer_is_not_lost_by_http(target: TargetServer, bench: HttpBench) -> None:
    """Neither is it by a scenario."""
    http, content, lost = bench.begin(), MANY.encode(), 0
    for _ in range(100):
        try:
            await http.post(build_url(target, "early"), data=content)
        except RequestError:
            lost += 1
            break
    assert lost == 0


@HTTP1_ENGINES
async def test_an_answer_that_closes_leaves_other_connections_alone(
    target: TargetServer, worker: EngineWorker, engine: Engine
) -> None:
    """A target that answers `Connection: close` has one for each request, and another target one for all."""
    urls = (Url(build_url(target, "closing")), Url(build_url(target, "kept", TargetPort.OTHER)))
    account = await worker.run(Spec(urls=urls, engine=engine, concurrency=1, timeout_s=20.0), 20)
    assert count(account) == {"ok": 20}
    assert (target.connections[TargetPort.PLAIN], target.connections[TargetPort.OTHER]) == (10, 1)


async def test_an_answer_that_closes_leaves_other_connections_of_http_alone(
    target: TargetServer, bench: HttpBench
) -> None:
    """So it is in a scenario."""
    http = bench.begin()
    for _ in range(10):
        await http.get(build_url(target, "closing"))
        await http.get(build_url(target, "kept", TargetPort.OTHER))
    assert (target.connections[TargetPort.PLAIN], target.connections[TargetPort.OTHER]) == (10, 1)


@HTTP1_ENGINES
async def test_a_request_that_closes_leaves_other_connections_alone(
    target: TargetServer, engine: Engine
) -> None:
    """Of two targets of a spec, one may ask to close."""
    closing = Target(name="closing", url=build_url(target, "closing"), headers=(CLOSE,))
    kept = Target(name="kept", url=build_url(target, "kept", TargetPort.OTHER))
    spec = Spec(urls=(), targets=(closing, kept), engine=engine, concurrency=1, timeout_s=20.0)
    feed = Feed()
    running = build_engine(spec, feed, Supervisor(), EngineContext())
    await running.open()
    running.start()
    execution = Execution(Lease(id="l1", run="r1", ranges=[(0, 20)], limit=20), spec, asyncio.Future())
    feed.add(execution)
    async with asyncio.timeout(20):
        await execution.finished
    await running.close()
    assert execution.outcomes[0] == 20
    assert (target.connections[TargetPort.PLAIN], target.connections[TargetPort.OTHER]) == (10, 1)
