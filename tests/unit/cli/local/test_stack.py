import asyncio
import dataclasses
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from oku_cli.backends.data_dir import DataDir
from oku_cli.local.stack import LocalStack, StackError
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process import child as child_module
from oku_cli.process.child import Child
from oku_cli.user_code.code_files import MOST_FILES
from oku_core.broker.socket_url import find_socket_path
from oku_core.process.landlock import Confinement
from oku_core.spec.secrets import SecretSource

Build = Callable[..., LocalStack]
PLAN = StackPlan(workers=2, servers=1, delay="0..3s", seed=7)


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    """A folder that is held."""
    folder = DataDir(tmp_path)
    folder.hold()
    return folder


@pytest.fixture
async def build(data_dir: DataDir) -> AsyncIterator[Build]:
    """Builds stacks that are ended after the test."""
    built: list[LocalStack] = []

    def build(plan: StackPlan = PLAN) -> LocalStack:
        built.append(LocalStack(data_dir, plan, print))
        return built[-1]

    yield build
    for stack in built:
        await stack.end()


async def test_the_logs_of_all_children_are_bounded_while_they_run(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever program a child is, and whoever makes it print."""
    monkeypatch.setattr(child_module, "MOST_LOG_BYTES", 1000)
    stack = build()
    command = ["/bin/sh", "-c", "yes | head -c 2000; sleep 60"]
    stack.children = [Child(name, command, tmp_path / f"{name}.log", os.environ) for name in ("a", "b")]
    stack.launch()
    async with asyncio.timeout(5):
        while not all((tmp_path / f"{name}.log.1").exists() for name in ("a", "b")):  # noqa: ASYNC110  # files
            await asyncio.sleep(0.02)


async def test_a_stack_is_coordinator_servers_and_workers(build: Build) -> None:
    """They start in this order, and the delay servers only if Oku brings them."""
    names = [child.name for child in build().children]
    assert names == ["coordinator", "server", "worker-1", "worker-2"]
    without = StackPlan(workers=1, servers=0, delay="0s", seed=0)
    assert [child.name for child in build(without).children] == ["coordinator", "worker-1"]
    # The delay servers are started with the delay and seed of the plan.
    command = next(child.command for child in build().children if child.name == "server")
    for flag, value in (("--delay", "0..3s"), ("--seed", "7")):
        assert command[command.index(flag) + 1] == value
    # The children have the flags of a stack of ones own.
    children = {child.name: child for child in build(PLAN).children}
    for name in ("coordinator", "worker-1", "worker-2"):
        command = children[name].command
        assert command[command.index("--files-dir") + 1] == "/"
    assert "--allow-user-code" in children["coordinator"].command
    command = children["worker-1"].command
    assert command[command.index("--inherit-env") + 1] == "*"
    command = children["coordinator"].command
    assert int(command[command.index("--max-run-files") + 1]) > MOST_FILES


async def test_a_stack_gets_more_workers(build: Build, data_dir: DataDir) -> None:
    """They are started once, like the first ones, and other commands can see them."""
    stack = build()
    stack.launch()
    for workers in (1, 4, 3):
        stack.grow(workers)
    names = [f"worker-{number}" for number in range(1, 5)]
    assert [child.name for child in stack.children if child.name.startswith("worker")] == names
    written = data_dir.read_stack()
    assert written is not None
    assert written.children == {child.name: child.pid for child in stack.children}
    assert all(written.children.values())


def test_a_stack_is_described_by_what_a_run_may_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets, settings and variables count, but for those that a terminal sets; no secret is shown."""
    monkeypatch.setenv("TOKEN", "first")
    plan = dataclasses.replace(PLAN, secrets=SecretSource(("TOKEN",)))
    shape = plan.describe("key")
    assert (shape.servers, shape.delay, shape.seed) == (1, "0..3s", 7)
    assert dataclasses.replace(plan, workers=9).describe("key") == shape
    monkeypatch.setenv("SHLVL", "7")
    assert plan.describe("key") == shape
    others = [
        PLAN.describe("key"),
        dataclasses.replace(plan, coordinator_environment={"OKU_KEEP_RUNS": "5"}).describe("key"),
        dataclasses.replace(plan, confinement=Confinement.REQUIRED).describe("key"),
        plan.describe("another key"),
    ]
    for name in ("TOKEN", "BASE_URL"):
        monkeypatch.setenv(name, "second")
        others.append(plan.describe("key"))
    assert len({shape.settings, *(other.settings for other in others)}) == 7
    assert "first" not in repr(shape)


async def test_user_code_is_confined_on_request(build: Build) -> None:
    """It is the user's own; another command that goes on with the run is told the same."""
    for confinement, flags, worker_flag in (
        (Confinement.OFF, [], "--no-confine-user-code"),
        (Confinement.ON, ["--confine-user-code"], "--confine-user-code"),
        (Confinement.REQUIRED, ["--require-confinement"], "--require-confinement"),
    ):
        plan = dataclasses.replace(PLAN, confinement=confinement)
        assert plan.build_flags() == flags
        workers = [child.command for child in build(plan).children if child.name.startswith("worker")]
        found = [
            [word for word in command if word.startswith("--") and "confine" in word] for command in workers
        ]
        assert found == [[worker_flag]] * 2
    # Each worker may send from an address of its own.
    plan = dataclasses.replace(PLAN, workers=300, spreads_addresses=True)
    commands = {child.name: child.command for child in build(plan).children}
    assert commands["worker-1"][-2:] == ("--local-address", "127.0.0.2")
    assert len({commands[f"worker-{number}"][-1] for number in range(1, 255)}) == 254
    assert commands["worker-255"][-1] == "127.0.0.2"
    children = build().children
    assert not any("--local-address" in child.command for child in children)


async def test_each_child_is_handed_the_secrets_that_it_needs(
    build: Build, monkeypatch: pytest.MonkeyPatch, data_dir: DataDir
) -> None:
    """By a socket; none of them is in its command or its environment, whatever the user has set."""
    monkeypatch.setenv("SHOP_TOKEN", "secret-of-the-shop")
    loki = {"OKU_LOKI_URL": "http://loki", "OKU_LOKI_TOKEN": "secret-of-loki"}
    plan = dataclasses.replace(
        PLAN, secrets=SecretSource(("SHOP_TOKEN", "MISSING")), coordinator_environment=loki
    )
    stack = build(plan)
    given = {child.name: child.inputs.variables for child in stack.children}
    assert given["server"] == {}
    assert given["worker-1"] == given["worker-2"]
    assert given["worker-1"].keys() == {"OKU_BROKER_URL", "OKU_MESSAGE_KEY", "SHOP_TOKEN"}
    assert given["coordinator"].keys() == {"OKU_BROKER_URL", "OKU_MESSAGE_KEY", "OKU_TOKEN", *loki}
    key = given["worker-1"]["OKU_MESSAGE_KEY"]
    assert given["coordinator"]["OKU_MESSAGE_KEY"] == key
    assert key != data_dir.message_key.read_text()
    # The worker connects where the coordinator listens.
    [url] = {given[name]["OKU_BROKER_URL"] for name in ("coordinator", "worker-1")}
    path = find_socket_path(url)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
    values = {key, stack.endpoint.token, "secret-of-the-shop", "secret-of-loki"}
    for child in stack.children:
        shown = "\0".join((*child.command, *child.environment.values(), child.inputs.text))
        assert [value for value in values if value in shown] == [], child.name


async def test_a_stack_with_a_broker_opens_no_socket_and_keeps_its_key(
    build: Build, data_dir: DataDir
) -> None:
    """The broker may still have messages that another stack of the folder signed."""
    stack = build(dataclasses.replace(PLAN, broker_url="redis://:hunter2@h/3"))
    for child in stack.children:
        if child.name != "server":
            assert child.inputs.variables["OKU_BROKER_URL"] == "redis://:hunter2@h/3"
            assert child.inputs.variables["OKU_MESSAGE_KEY"] == data_dir.message_key.read_text()
        assert "hunter2" not in "\0".join((*child.command, *child.environment.values()))
        assert "--broker-listen-fd" not in child.command
    assert not list(data_dir.absolute.rglob("*.sock"))


async def test_settings_of_the_users_shell_do_not_reach_the_children(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `OKU_HOST` meant for a coordinator of one's own must not open this one to the world."""
    monkeypatch.setenv("OKU_HOST", "0.0.0.0")
    monkeypatch.setenv("OTHER", "kept")
    monkeypatch.setenv("OKU_KEEP_FOR", "30d")
    plan = dataclasses.replace(PLAN, coordinator_environment={"OKU_KEEP_RUNS": "5"})
    for child in build(plan).children:
        assert child.inputs.variables.get("OKU_KEEP_RUNS") == ("5" if child.name == "coordinator" else None)
        assert child.environment["OTHER"] == "kept"
        own = {name: value for name, value in child.environment.items() if name.startswith("OKU_")}
        assert own == {"OKU_LOG_FORMAT": "text"}  # as people read it
    # What a program needs to start is in its environment. Although a spec may name it.
    monkeypatch.setenv("PYTHONPATH", "/lib/of/oku")
    plan = dataclasses.replace(PLAN, secrets=SecretSource(("PYTHONPATH",)))
    assert {child.environment["PYTHONPATH"] for child in build(plan).children} == {"/lib/of/oku"}


async def test_work_ends_when_a_child_cannot_be_kept_alive(build: Build, data_dir: DataDir) -> None:
    """The caller gets the error at once; work that ends by itself gives its result."""
    stack = build()
    asyncio.get_running_loop().call_soon(stack.failure.set_exception, StackError("worker-1 ends"))
    with pytest.raises(StackError, match="worker-1 ends"):
        await stack.guard(asyncio.sleep(60))
    stack = build()
    assert await stack.guard(asyncio.sleep(0, "done")) == "done"
    await stack.end()
    assert list(data_dir.logs.iterdir()) == []


async def test_a_port_is_listened_on_before_any_child_is_started(build: Build) -> None:
    """A child inherits the socket, so no other process can listen there; it is closed with the stack."""
    stack = build(dataclasses.replace(PLAN, servers=2))
    children = {child.name: child for child in stack.children}
    server_url = children["coordinator"].command[children["coordinator"].command.index("--server-url") + 1]
    assert not any(child.pid for child in stack.children)
    for url in (stack.endpoint.url, server_url):
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        socket.create_connection(address, timeout=1).close()
        with pytest.raises(OSError, match="in use"):
            socket.create_server(address)
    names = ("coordinator", "server", "worker-1")
    assert [len(children[name].inputs.sockets) for name in names] == [3, 2, 0]
    assert not any("--port" in children[name].command for name in names)
    stack = build()
    await stack.end()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(stack.endpoint.url.rpartition(":")[2])), timeout=1)


def test_what_was_allowed_can_be_said_to_another_command(tmp_path: Path) -> None:
    """The hint on how to resume a run that names secrets contains these flags."""
    source = SecretSource(("SHOP_TOKEN", "OTHER"), tmp_path)
    flags = ["--allow-env", "SHOP_TOKEN", "--allow-env", "OTHER", "--secrets-dir", str(tmp_path)]
    assert dataclasses.replace(PLAN, secrets=source).build_flags() == flags
    assert PLAN.build_flags() == []
