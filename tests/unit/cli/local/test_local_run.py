from pathlib import Path
from typing import Any

import msgspec
import pytest

from oku_cli.backends.data_dir import DataDir
from oku_cli.follow.run_start import RunStart
from oku_cli.follow.watch import Watch
from oku_cli.local import local_run
from oku_cli.process.interrupt import SignalAction
from oku_core.errors import UserError
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.file_reference import CodeFile
from oku_core.spec.values.load_values import StageText
from oku_core.spec.values.quantity import Rate
from oku_core.spec.values.url import Url


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight processors on which nobody changes limits."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 20_000))
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)


@pytest.mark.usefixtures("processors")
@pytest.mark.parametrize(
    ("changes", "servers", "spreads"),
    [
        ({"workers": 1, "concurrency": 16_000}, 4, False),
        ({"workers": 1, "concurrency": 16_001}, 4, True),
        ({"workers": 4, "concurrency": 64_000}, 4, True),
        ({"workers": 5, "concurrency": 75_000}, 5, True),
        ({"workers": 4, "concurrency": 60_000, "servers": 6}, 6, True),
        ({"workers": 4, "concurrency": 60_000, "urls": (Url("http://h/"),)}, 0, False),
    ],
)
def test_many_connections_take_more_servers_and_addresses(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], servers: int, *, spreads: bool
) -> None:
    """No process opens more files than it may, no address gives more connections than it has ports."""
    monkeypatch.setattr("sys.platform", "linux")
    plan = local_run.build_stack_plan(Spec(**changes))
    assert (plan.servers, plan.spreads_addresses) == (servers, spreads)


@pytest.mark.usefixtures("processors")
def test_what_a_rate_may_have_in_flight_is_shared_and_never_refused() -> None:
    """Nobody has asked for it; where files are few, the worker lowers it."""
    open_run: dict[str, Any] = {"requests": 10**6, "rate": Rate("50k/s")}
    plan = local_run.build_stack_plan(Spec(**open_run, workers=1, concurrency=100_000))
    assert plan.spreads_addresses
    plan = local_run.build_stack_plan(Spec(**open_run, workers=8, concurrency=12_000))
    assert not plan.spreads_addresses
    with pytest.raises(UserError, match="--concurrency: 30000 in flight are more than the 19900 connections"):
        local_run.build_stack_plan(Spec(**open_run, workers=1, concurrency=30_000))
    # Users and stages are shared out as well.
    code: dict[str, Any] = {
        "engine": Engine.PYTHON,
        "scenario": CodeFile(f"a.py@sha256:{'0' * 64}:1:a.py"),
        "requests": 10**6,
    }
    plan = local_run.build_stack_plan(Spec(**code, workers=4, concurrency=4 * 19_900))
    assert (plan.workers, plan.servers) == (4, 0)
    with pytest.raises(UserError, match="--users: 19901 in flight for each of 4 workers are"):
        local_run.build_stack_plan(Spec(**code, workers=4, concurrency=4 * 19_900 + 1))
    stages: dict[str, Any] = {"stages": (StageText("1m:0..30k"),), "concurrency": 30_000}
    assert local_run.build_stack_plan(Spec(**stages, workers=2)).workers == 2
    with pytest.raises(UserError, match="--stage: 30000 in flight are more than the 19900 con"):
        local_run.build_stack_plan(Spec(**stages, workers=1))


@pytest.mark.usefixtures("processors")
def test_one_worker_sends_and_half_the_processors_answer() -> None:
    """The spec may say otherwise; a run against other servers starts no delay server."""
    plan = local_run.build_stack_plan(Spec())
    # Without a target, the delay is that of a service, and two workers share the requests.
    assert (plan.workers, plan.servers, plan.delay, plan.seed) == (2, 4, "lognormal:20ms,0.5", 0)
    assert local_run.build_stack_plan(Spec(workers=40, concurrency=10)).workers == 10
    plan = local_run.build_stack_plan(Spec(workers=2, servers=1, delay=parse_delay("1s"), seed=3))
    assert (plan.workers, plan.servers, plan.delay, plan.seed) == (2, 1, "1s", 3)
    plan = local_run.build_stack_plan(Spec(urls=(Url("http://h/"),)))
    assert (plan.workers, plan.servers) == (1, 0)
    # A concurrency that needs more files than allowed is refused.
    with pytest.raises(UserError, match="--servers: 1 cannot hold 32000 connections, at least 2 are needed"):
        local_run.build_stack_plan(Spec(workers=2, concurrency=32_000, servers=1))
    local_run.build_stack_plan(Spec(concurrency=19_900))
    with pytest.raises(UserError, match="--concurrency: 19901 in flight are more than the 19900 connections"):
        local_run.build_stack_plan(Spec(workers=1, concurrency=19_901))
    plan = local_run.build_stack_plan(Spec(concurrency=1_000_000, requests=10))
    assert not plan.spreads_addresses


def test_bodies_that_do_not_fit_into_this_machine_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """All workers share its memory."""
    monkeypatch.setattr(local_run, "find_memory_limit", lambda: 200_000)
    spec = Spec(body="{i}" + "x" * 1000, concurrency=100)
    local_run.check_memory(spec, 1, Path)
    local_run.check_memory(spec, 2, Path)
    with pytest.raises(UserError, match=r"^body: .* 200 in flight in one worker .* it may use 200\.0 kB"):
        local_run.check_memory(msgspec.structs.replace(spec, concurrency=200), 1, Path)


async def test_a_local_run_cannot_outlive_its_command(tmp_path: Path) -> None:
    """To detach it is refused before anything is started."""
    start = RunStart.submit(Spec())
    watch = Watch(on_sigterm=SignalAction.DETACH)
    with pytest.raises(UserError, match=r"^--on-sigterm: detach needs --coordinator or --kube; a local run"):
        await local_run.run_locally(
            DataDir(tmp_path / "data"), local_run.build_stack_plan(Spec()), start, watch
        )
    assert not (tmp_path / "data").exists()
