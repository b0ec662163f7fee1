import asyncio
import dataclasses
from pathlib import Path

import pytest

from oku_cli.data_dir import DataDir
from oku_cli.stack import LocalStack, StackError, StackPlan

PLAN = StackPlan(workers=2, servers=1, delay="0..3s", seed=7)


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    """A folder that is held."""
    folder = DataDir(tmp_path)
    folder.hold()
    return folder


async def test_a_stack_is_broker_coordinator_servers_and_workers(data_dir: DataDir) -> None:
    """In the order of starting; the servers only when Oku brings them."""
    names = [child.name for child in LocalStack(data_dir, PLAN, print).children]
    assert names == ["broker", "coordinator", "server", "worker-1", "worker-2"]
    without = StackPlan(workers=1, servers=0, delay="0s", seed=0)
    assert [child.name for child in LocalStack(data_dir, without, print).children] == [
        "broker", "coordinator", "worker-1",
    ]  # fmt: skip


async def test_a_coordinator_knows_what_its_servers_were_started_with(data_dir: DataDir) -> None:
    """So that requests need not say it again."""
    commands = {child.name: child.command for child in LocalStack(data_dir, PLAN, print).children}
    told, started = list(commands["coordinator"]), list(commands["server"])
    for flag, value in (("delay", "0..3s"), ("seed", "7")):
        assert told[told.index(f"--server-{flag}") + 1] == started[started.index(f"--{flag}") + 1] == value
    without = dataclasses.replace(PLAN, servers=0)
    assert "--server-delay" not in LocalStack(data_dir, without, print).children[1].command


async def test_each_worker_may_send_from_an_address_of_its_own(data_dir: DataDir) -> None:
    """More connections than an address has ports need several of them."""
    plan = dataclasses.replace(PLAN, workers=300, spreads_addresses=True)
    commands = {child.name: child.command for child in LocalStack(data_dir, plan, print).children}
    assert commands["worker-1"][-2:] == ("--local-address", "127.0.0.2")
    assert len({commands[f"worker-{number}"][-1] for number in range(1, 255)}) == 254
    assert commands["worker-255"][-1] == "127.0.0.2"
    children = LocalStack(data_dir, PLAN, print).children
    assert not any("--local-address" in child.command for child in children)


async def test_settings_of_the_users_shell_do_not_reach_the_children(
    data_dir: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `OKU_HOST` meant for a coordinator of one's own must not open this one to the world."""
    monkeypatch.setenv("OKU_HOST", "0.0.0.0")
    monkeypatch.setenv("OTHER", "kept")
    for child in LocalStack(data_dir, PLAN, print).children:
        assert "OKU_HOST" not in child.environment
        assert child.environment["OTHER"] == "kept"
        assert child.environment["OKU_LOG_FORMAT"] == "text"  # as people read it
        assert ("OKU_TOKEN" in child.environment) == (child.name == "coordinator")


async def test_work_ends_when_a_child_cannot_be_kept_alive(data_dir: DataDir) -> None:
    """Whoever waits is told at once."""
    stack = LocalStack(data_dir, PLAN, print)
    asyncio.get_running_loop().call_soon(stack.failure.set_exception, StackError("worker-1 ends"))

    with pytest.raises(StackError, match="worker-1 ends"):
        await stack.guard(asyncio.sleep(60))


async def test_work_that_ends_by_itself_gives_its_result(data_dir: DataDir) -> None:
    """The guard adds nothing."""
    stack = LocalStack(data_dir, PLAN, print)

    assert await stack.guard(asyncio.sleep(0, "done")) == "done"
    await stack.end()
    assert list(data_dir.logs.iterdir()) == []
