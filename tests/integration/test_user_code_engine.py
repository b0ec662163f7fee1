"""The engine of user code with real hosts of Python scenarios: what becomes of iterations, and of hosts."""

import asyncio
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.kit.library_names import list_library_names
from tests.kit.servers.shop import Shop
from tests.kit.workers.user_code_bench import UserCodeBench

from oku_core.messaging.process_ends import HostEndReason
from oku_core.spec.files import list_files
from oku_core.spec.values.request_content import Header
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.engines.contract.user_code_host import HostEnds, Isolation
from oku_workers.engines.user_code.engine import UserCodeEngine
from oku_workers.executions.execution import Execution


async def wait_until_begun(engine: UserCodeEngine, iterations: int) -> None:
    """Wait until so many iterations are under way in the host."""
    while engine.in_flight < iterations:  # noqa: ASYNC110  # the host says nothing when one begins
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[UserCodeBench]:
    """Has its host ended when a test fails, too."""
    bench = UserCodeBench(tmp_path)
    yield bench
    await bench.close()


def write(body: str, head: str = "") -> str:
    """The text of a scenario whose coroutine has this body."""
    code = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"import asyncio\nimport os\n{head}\n\nasync def scenario(index, http):\n{code}\n"


def check_sum(execution: Execution, iterations: int) -> None:
    """Each iteration has an outcome, or was given back, once."""
    assert execution.finished.done()
    assert sum(execution.outcomes) + len(execution.given_back) == iterations
    assert len(set(execution.given_back)) == len(execution.given_back)
    assert set(execution.untouched) <= set(execution.given_back)


async def test_iterations_are_counted_by_what_becomes_of_them(bench: UserCodeBench) -> None:
    """By tens: fine, an exception, an assertion, a failed check, one that lasts too long."""
    source = write(
        """
        if index % 5 == 1:
            raise KeyError(f"no tea")
        if index % 5 == 2:
            assert index < 0
        if index % 5 == 3:
            http.check(False, "no luck")
        if index % 5 == 4:
            await asyncio.sleep(30)
        """
    )
    account = await bench.run(source, 50, iteration_timeout_s=0.2, concurrency=20)
    assert account.outcomes == {"ok": 10, "exception": 10, "failed_check": 20, "timeout": 10}
    assert account.reasons == {
        "KeyError: 'no tea' (scenario.py:7 in scenario)": 10,
        "assert index < 0 (scenario.py:9 in scenario)": 10,
        "no luck": 10,
        "no end within 0.2s": 10,
    }
    [traceback] = account.execution.tracebacks.values()
    assert traceback == (
        "Traceback (most recent call last):\n"
        '  File "scenario.py", line 7, in scenario\n'
        '    raise KeyError(f"no tea")\n'
        "KeyError: 'no tea'\n"
    )


async def test_users_without_an_iteration_are_counted(bench: UserCodeBench) -> None:
    """Not those that are at work, nor before they have asked; a host that has ended has none at work."""
    spec = bench.build_spec(write("await asyncio.sleep(0.2 if index < 6 else 30)"), concurrency=4)
    engine = await bench.open(spec)
    load = engine.host_load
    execution = bench.add(spec, 12, limit=6)
    await wait_until_begun(engine, 4)
    assert load.idle_users == 0
    for limit, idle_users in ((6, 4), (7, 3), (12, 0)):
        bench.feed.raise_limits({execution: limit})
        async with asyncio.timeout(20):
            while load.idle_users != idle_users:  # noqa: ASYNC110  # nobody says so
                await asyncio.sleep(0.01)
    assert sum(execution.outcomes) == 6
    await bench.close()
    assert load.idle_users == 4
    assert len(execution.given_back) == 4


async def test_an_iteration_fails_with_the_first_of_its_requests_that_fails(bench: UserCodeBench) -> None:
    """Whether it goes on after it, catches the error, or does not."""
    source = write(
        """
        if index % 3 == 0:
            await http.get("/status/500", name="first")
            await http.get("/status/404", name="second")
        elif index % 3 == 1:
            await http.get("/hang-up", name="first")
        else:
            try:
                await http.get("/hang-up", name="first")
            except RequestError as error:
                assert error.response is None
        """,
        "from oku import RequestError",
    )
    async with Shop() as shop:
        account = await bench.run(source, 30, base_url=shop.url)
    assert account.outcomes == {"failed_check": 30}
    assert account.reasons == {"first: status 500": 10, "first: the server hung up": 20}
    assert account.inner == {
        "first": {"unexpected_status": 10, "disconnected": 20}, "second": {"unexpected_status": 10},
    }  # fmt: skip
    assert account.statuses == {"first": {500: 10}, "second": {404: 10}}


async def test_requests_of_a_task_group_fail_as_others_do(bench: UserCodeBench) -> None:
    """An exception among them is an exception all the same."""
    source = write(
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(http))
            if index == 0:
                raise KeyError("tea")
        """,
        "async def ask(http):\n    await http.get('/hang-up', name='page')\n",
    )
    async with Shop() as shop:
        account = await bench.run(source, 10, base_url=shop.url)
    assert account.outcomes == {"failed_check": 9, "exception": 1}


async def test_what_a_scenario_is_called_with(bench: UserCodeBench) -> None:
    """By name, in any order: the index, its row, and what `setup` has returned; more has a default."""
    source = """
def check(setup_data, row, index, *, more=3):
    assert (setup_data, row, more) == ({"a": [1]}, {"sku": f"tea {index % 2}", "n": str(index % 2)}, 3), row

async def scenario(row, setup_data, index, more=3):
    check(setup_data, row, index, more=more)
"""
    data = bench.add_data("a.csv", "sku,n\ntea 0,0\ntea 1,1\n")
    spec = bench.build_spec(source, data=data)
    await bench.open(spec, setup_data='{"a":[1]}')
    account = await bench.finish(bench.add(spec, 40))
    assert (account.outcomes, account.reasons) == ({"ok": 40}, {})


async def test_columns_stand_in_urls_and_headers_of_the_run(bench: UserCodeBench) -> None:
    """As with every engine; each iteration has its own row."""
    data = bench.add_data("a.csv", "sku\ntea/1\ntea/2\n")
    source = write(
        """
        told = await http.get("/echo/{sku}/{i}", name="echo").json()
        assert told["target"] == f"/echo/tea%2F{index % 2 + 1}/{index}", told
        assert ["X-Sku", f"tea/{index % 2 + 1}"] in told["headers"], told
        """
    )
    async with Shop() as shop:
        headers = (Header("X-Sku: {sku}"),)
        account = await bench.run(source, 20, data=data, headers=headers, base_url=shop.url)
    assert (account.outcomes, account.reasons) == ({"ok": 20}, {})


async def test_users_keep_connections_and_cookies_if_they_want(bench: UserCodeBench) -> None:
    """As many connections as users, over all iterations; each user has a cart of its own."""
    source = write(
        """
        http.keep_cookies()
        lines = await http.post("/cart", name="cart").json("/lines")
        CARTS[http.user] = CARTS.get(http.user, 0) + 1
        assert lines == CARTS[http.user]
        """,
        "CARTS = {}",
    )
    async with Shop() as shop:
        account = await bench.run(source, 40, base_url=shop.url, concurrency=4)
        assert shop.connections == 4
    assert (account.outcomes, account.reasons) == ({"ok": 40}, {})


async def test_modules_and_files_beside_a_scenario_are_there(bench: UserCodeBench) -> None:
    """It runs in a folder with all of them, under their paths."""
    source = (
        "from parts.tea import sort\nfrom pathlib import Path\n\n"
        "async def scenario():\n    sort(Path('a.txt'))\n"
    )
    files = {
        "parts/tea.py": b"def sort(path):\n    assert path.read_text() == 'green'\n",
        "parts/__init__.py": b"",
        "a.txt": b"green",
    }
    account = await bench.run(source, 5, files)
    assert (account.outcomes, account.reasons) == ({"ok": 5}, {})


async def test_modules_may_have_the_names_of_libraries(bench: UserCodeBench) -> None:
    """Of all that the host loads, nothing is taken for a file, nor the other way round."""
    names = [name for name in list_library_names() if name not in ("json", "oku")]
    source = (
        "import json, sys\nfrom oku import Http\n"
        + "".join(f"import {name}\nassert {name}.OWN\n" for name in names)
        + "\nasync def scenario(http: Http):\n    assert json.dumps((await http.get('/')).status)\n"
    )
    files = {f"{name}.py": b"OWN = 1\n" for name in names}
    async with Shop() as shop:
        account = await bench.run(source, 5, files, base_url=shop.url)
    assert (account.outcomes, account.reasons) == ({"ok": 5}, {})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import tea\n", r"No module named 'tea' \(scenario\.py:1 in <module>\)"),
        ("async def scenario(:\n", r"SyntaxError: .* \(scenario\.py:1\)"),
        ("raise SystemExit(3)\n", r"SystemExit: 3 \(scenario\.py:1 in <module>\)"),
        ("", r"scenario\.py has no `async def scenario\(index, http\)`"),
        ("def scenario(index):\n    pass\n", r"scenario\.py has no `async def scenario\(index, http\)`"),
        (
            "async def scenario(i):\n    pass\n",
            r"scenario asks for the argument i, but it may have index, http, row",
        ),
        ("async def scenario(row):\n    pass\n", "asks for the argument row, but the run has no data"),
        ("import os\nos._exit(5)\n", "ended while it was loaded: it exited with code 5"),
        (
            "import os\nos.kill(os.getpid(), 9)\n",
            r"ended while it was loaded: it was killed by a signal \(SIGKILL\)",
        ),
    ],
)
async def test_what_cannot_be_loaded_is_said_in_one_line(
    bench: UserCodeBench, source: str, message: str
) -> None:
    """Nothing of the run begins."""
    with pytest.raises(EngineError, match=message) as caught:
        await bench.open(bench.build_spec(source))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("death", "reason", "text"),
    [
        ("os._exit(7)", HostEndReason.EXITED, "it exited with code 7"),
        ("os.kill(os.getpid(), 9)", HostEndReason.KILLED, "it was killed by a signal (SIGKILL)"),
        ("ctypes.string_at(0)", HostEndReason.CRASHED, "it crashed (SIGSEGV)"),
        (
            "asyncio.get_running_loop().call_soon(exit, 3); await asyncio.sleep(5)",
            HostEndReason.EXITED,
            "it called sys.exit(3)",
        ),
    ],
)
async def test_a_host_that_dies_is_replaced(
    bench: UserCodeBench, death: str, reason: HostEndReason, text: str
) -> None:
    """What it had begun is given back, what it had not is known to be untouched, and all else counts.

    How it has died is reported as it was.
    """
    source = write(
        f"""
        await asyncio.sleep(0.005)
        if index == 100:
            await asyncio.sleep(0.2)
            {death}
        """,
        "import ctypes",
    )
    spec, ends = bench.build_spec(source, concurrency=4), HostEnds()
    await bench.open(spec, run="run", host_ends=ends)
    execution = bench.add(spec, 101)
    account = await bench.finish(execution)
    [end] = ends.list_latest()
    assert (end.run, end.number, end.reason, end.text) == ("run", 1, reason, text)
    assert end.requests == len(execution.given_back)
    check_sum(execution, 101)
    assert 100 in execution.given_back
    assert 100 not in execution.untouched
    again = await bench.finish(bench.add(spec, 50, start=1000))
    assert again.outcomes == {"ok": 50}
    assert account.outcomes == {"ok": 101 - len(execution.given_back)}


async def test_a_host_that_dies_is_replaced_although_its_files_were_removed(bench: UserCodeBench) -> None:
    """Those of the run are fetched again, and stand under their paths again."""
    source = write(
        """
        if index == 10 and more.NUMBER == 7:
            shutil.rmtree(Path(__file__).parent)
            os._exit(7)
        """,
        "import os, shutil\nfrom pathlib import Path\nimport more",
    )
    files = {"more.py": b"NUMBER = 7"}
    spec = bench.build_spec(source, files, concurrency=1)
    kept = {file.digest: bench.find_file(file.digest).read_bytes() for file in list_files(spec)}

    async def fetch() -> None:
        for digest, content in kept.items():
            bench.find_file(digest).write_bytes(content)

    await bench.open(spec, fetch_files=fetch)
    for digest in kept:
        bench.find_file(digest).unlink()
    await bench.finish(bench.add(spec, 11))
    again = await bench.finish(bench.add(spec, 50, start=1000))
    assert again.outcomes == {"ok": 50}


async def test_processor_time_never_falls_whatever_user_code_says(bench: UserCodeBench) -> None:
    """It can report for its host; the coordinator takes no checkpoint whose processor time has fallen."""
    source = write(
        """
        if index == 20:
            os.write(int(sys.argv[2]), frame(Report(cpu_us=1)))
            time.sleep(0.5)
        """,
        "import sys, time\nfrom oku_core.user_code.messages import Report, frame",
    )
    spec = bench.build_spec(source, concurrency=1)
    engine = await bench.open(spec)
    await bench.finish(bench.add(spec, 20))
    before_s = engine.host_load.cpu_s
    assert before_s > 0.01
    execution = bench.add(spec, 10, start=20)
    while not execution.finished.done():
        await asyncio.sleep(0.02)
        assert engine.host_load.cpu_s >= before_s


async def test_a_host_that_is_killed_while_it_loads_is_tried_again(bench: UserCodeBench) -> None:
    """It may be the system that killed it, not the code."""
    head = """
        import signal
        from pathlib import Path

        if not (tried := Path(__file__).with_name("tried")).exists():
            tried.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    account = await bench.run(write("pass", textwrap.dedent(head)), 50)
    assert account.outcomes == {"ok": 50}


async def test_user_code_that_kills_every_host_is_not_tried_for_ever(bench: UserCodeBench) -> None:
    """After three in a row that have ended nothing it is given up, and says why."""
    spec = bench.build_spec(write("os._exit(3)"), concurrency=2)
    engine = await bench.open(spec)
    leases = [bench.add(spec, 10, start=start) for start in (0, 100, 200, 300)]
    for execution in leases:
        await bench.finish(execution)
        check_sum(execution, execution.taken)
    assert sum(execution.taken for execution in leases) < 40
    assert engine.fault == ("user code is not tried again: it exited with code 3, 3 times in a row")


@pytest.mark.parametrize(
    ("takes", "reason", "text"),
    [
        ("pass", HostEndReason.NO_ANSWER, "it has blocked its process for 1 s"),
        (
            "held.extend(iter(lambda: bytes(1000), None))",
            HostEndReason.MEMORY_LIMIT,
            "it has blocked its process for 1 s, and is at its memory limit",
        ),
    ],
    ids=["idle", "greedy"],
)
async def test_a_host_that_is_blocked_is_ended(
    bench: UserCodeBench, takes: str, reason: HostEndReason, text: str
) -> None:
    """The worker goes on meanwhile; the reason is reported, and the iterations are given back."""
    source = write(
        f"""
        if index == 3:
            try:
                {takes}
            except MemoryError:
                pass
            import time
            time.sleep(60)
        """,
        "held = []",
    )
    spec, ends = bench.build_spec(source, concurrency=1), HostEnds()
    await bench.open(spec, silent_s=1.0, host_ends=ends, isolation=Isolation(memory_bytes=200_000_000))
    execution = bench.add(spec, 4)
    began = asyncio.get_running_loop().time()
    await bench.finish(execution)
    assert 1.0 <= asyncio.get_running_loop().time() - began < 6.0
    check_sum(execution, 4)
    assert execution.given_back == [3]
    assert [(end.reason, end.text) for end in ends.list_latest()] == [(reason, text)]
    assert (await bench.finish(bench.add(spec, 3, start=10))).outcomes == {"ok": 3}


async def test_iterations_that_are_cut_off_are_given_back(bench: UserCodeBench) -> None:
    """Also one that takes the cancellation for something else; the host goes on if it can."""
    source = write(
        """
        try:
            await asyncio.sleep(60)
        finally:
            if index == 1:
                raise ValueError("no")
        """
    )
    spec = bench.build_spec(source, concurrency=3)
    engine = await bench.open(spec)
    execution = bench.add(spec, 3)
    await wait_until_begun(engine, 3)
    engine.cancel(execution)
    await bench.finish(execution)
    check_sum(execution, 3)
    assert (sorted(execution.given_back), execution.untouched) == ([0, 1, 2], [])


async def test_one_that_does_not_let_itself_be_cut_off_costs_the_host(bench: UserCodeBench) -> None:
    """Five seconds after it was to end it is killed; others that were in it are given back, too."""
    source = write(
        """
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
        """
    )
    spec = bench.build_spec(source, concurrency=2)
    engine = await bench.open(spec)
    execution = bench.add(spec, 2)
    await wait_until_begun(engine, 2)
    engine.cancel(execution)
    await bench.finish(execution)
    check_sum(execution, 2)
    assert sorted(execution.given_back) == [0, 1]


async def test_a_smaller_window_has_fewer_users(bench: UserCodeBench) -> None:
    """Those beyond end with their iterations, and come back when there is room again."""
    source = write("await http.get('/slow' if index == 0 else '/', name='page', timeout=0.3)")
    async with Shop() as shop:
        spec = bench.build_spec(source, base_url=shop.url, concurrency=10)
        engine = await bench.open(spec)
        engine.set_window(1)
        account = await bench.finish(bench.add(spec, 30))
        assert (account.outcomes, shop.connections) == ({"failed_check": 1, "ok": 29}, 2)
        engine.set_window(10)
        account = await bench.finish(bench.add(spec, 30, start=100))
        assert account.outcomes == {"ok": 30}


async def test_what_is_asked_outside_of_iterations_counts_beside_them(bench: UserCodeBench) -> None:
    """A task that a scenario leaves behind goes on; its requests are those of no iteration."""
    source = write(
        """
        if index == 0:
            TASKS.append(asyncio.ensure_future(later(http)))
        else:
            await asyncio.sleep(0.4)
        """,
        "TASKS = []\n"
        "async def later(http):\n    await asyncio.sleep(0.2)\n    await http.get('/', name='late')\n",
    )
    async with Shop() as shop:
        account = await bench.run(source, 2, base_url=shop.url)
    assert account.outcomes == {"ok": 2}
    assert account.inner == {"late": {"ok": 1}}


async def test_user_code_that_cancels_itself_costs_no_user(bench: UserCodeBench) -> None:
    """It has raised an exception; a user that is cancelled between two iterations is replaced."""
    source = write(
        """
        task = asyncio.current_task()
        if index % 2:
            task.cancel()
            await asyncio.sleep(1)
        else:
            asyncio.get_running_loop().call_later(0.001, task.cancel)
        """
    )
    account = await bench.run(source, 20, concurrency=1)
    assert sum(account.outcomes.values()) == 20
    assert account.outcomes["exception"] >= 10


async def test_a_scenario_that_never_waits_is_carried_out(bench: UserCodeBench) -> None:
    """As fast as it can; nothing is lost."""
    account = await bench.run("async def scenario():\n    pass\n", 5000, concurrency=50)
    assert account.outcomes == {"ok": 5000}


async def test_what_is_not_awaited_fails_its_iteration(bench: UserCodeBench) -> None:
    """With the line where it was made, and its file if that is another; nothing was sent there."""
    files = {"pages.py": b"def open_home(http):\n    http.get('/')\n"}
    cases = {
        "http.get('/')": "line 8: http.get(…) was not awaited",
        "call = http.post('/', json={'a': 1}).json('/a')": "line 10: http.post(…) was not awaited",
        "asyncio.create_task(http.get('/'))": "line 12: http.get(…) was not awaited",
        "late = asyncio.create_task(http.get('/slow')); await asyncio.sleep(0)": "line 14: http.get(…) was",
        "asyncio.sleep(1)": "line 16: sleep(…) was not awaited",
        "http.think('1s')": "line 18: think(…) was not awaited",
        "log_in(http)": "line 20: log_in(…) was not awaited",
        "late = log_in(http)": "log_in(…) was not awaited",
        "open_home(http)": "pages.py line 2: http.get(…) was not awaited",
    }
    lines = [f"if index == {place}:\n    {line}" for place, line in enumerate(cases)]
    source = write(
        "\n".join(lines), "from pages import open_home\nasync def log_in(http): await http.get('/')"
    )
    async with Shop() as shop:
        account = await bench.run(source, len(cases), files, base_url=shop.url)
        asked = shop.asked.total() - shop.asked["GET /slow"]
    assert account.outcomes == {"failed_check": len(cases)}
    for wanted in cases.values():
        assert any(reason.startswith(wanted) for reason in account.reasons), (wanted, account.reasons)
    assert asked <= 1  # the task may have begun before the host ended


async def test_what_is_awaited_somehow_fails_nothing(bench: UserCodeBench) -> None:
    """In a group, as a task, with a limit; and a call that is closed, or whose task is cancelled."""
    source = write(
        """
        await asyncio.gather(http.get("/"), http.get("/"))
        async with asyncio.TaskGroup() as group:
            group.create_task(http.get("/"))
        await asyncio.wait_for(http.get("/"), 5)
        await asyncio.create_task(http.get("/"))
        http.get("/").close()
        task = asyncio.create_task(http.get("/"))
        task.cancel()
        await asyncio.wait([task])
        """
    )
    async with Shop() as shop:
        account = await bench.run(source, 10, base_url=shop.url)
    assert account.outcomes == {"ok": 10}, account.reasons
    assert account.inner == {"GET /": {"ok": 50}}
