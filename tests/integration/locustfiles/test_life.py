"""The process that runs a locustfile: its users, what is cut off, and what is left when it dies."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.kit.servers.hostile_server import HostileServer
from tests.kit.workers.locust_bench import LocustBench, count_outcomes, count_requests, list_reasons

from oku_workers.executions.execution import Execution

Build = Callable[..., LocustBench]

SLOW = """
    from locust import FastHttpUser, task

    class Visitor(FastHttpUser):
        @task
        def visit(self):
            self.client.get(f"/slow/0.05/{self.oku.index}")
    """


async def until(is_true: Callable[[], bool]) -> None:
    """Wait for something that becomes true."""
    async with asyncio.timeout(20):
        while not is_true():  # noqa: ASYNC110  # it is true in another process
            await asyncio.sleep(0.01)


def has_ended(execution: Execution, count: int) -> bool:
    """Whether so many iterations have."""
    return sum(execution.outcomes) >= count


def list_children() -> list[int]:
    """The process ids of the children of this process that run user code."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [pid for pid in map(int, children) if b"oku.host" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def is_replaced(host: int) -> bool:
    """Whether another host is there instead of one that was killed."""
    return bool(set(list_children()) - {host})


async def test_users_come_and_go(build: Build, site: HostileServer) -> None:
    """There are as many at work as are wanted; those that go end their iterations and say goodbye."""
    source = """
        from locust import FastHttpUser, constant, task

        class Visitor(FastHttpUser):
            wait_time = constant(0.01)

            def on_start(self):
                self.client.get("/enter")

            def on_stop(self):
                self.client.get("/leave")

            @task
            def visit(self):
                self.client.get("/slow/0.02")
        """

    def count_users() -> int:
        targets = Counter(site.targets)
        return targets["/enter"] - targets["/leave"]

    async with build(source, concurrency=4) as bench:
        execution = bench.begin((0, 100_000))
        await until(lambda: count_users() == 4)
        bench.engine.set_window(9)
        await until(lambda: count_users() == 9)
        bench.engine.set_window(2)
        await until(lambda: count_users() == 2)
        site.most_at_once = 0
        bench.engine.set_window(0)
        await until(lambda: count_users() == 0)
        bench.engine.set_window(3)
        await until(lambda: count_users() == 3)
        assert site.most_at_once <= 3
        bench.feed.shorten(execution, 0)
        await asyncio.wait_for(execution.finished, 10)
    assert set(count_outcomes(execution)) == {"ok"}


async def test_idle_users_go_at_once(build: Build, site: HostileServer) -> None:
    """They have nothing to end, and do nothing more."""
    source = SLOW + "\n        def on_stop(self):\n            self.client.get('/leave')\n"
    async with build(source, concurrency=5) as bench:
        await bench.run(5)
        bench.engine.set_window(1)
        await until(lambda: site.targets.count("/leave") == 4)
        site.most_at_once = 0
        await bench.run(20)
    assert site.most_at_once == 1


async def test_only_what_has_begun_is_in_flight(build: Build, site: HostileServer) -> None:
    """What waits in the host for the next moment is not: there are as many in flight as there are users."""
    async with build(SLOW, concurrency=3) as bench:
        execution = bench.begin((0, 100_000))
        most = 0
        while site.received < 100:
            await asyncio.sleep(0.005)
            most = max(most, bench.engine.in_flight)
            assert len(bench.engine.group_in_flight().get(execution, [])) >= bench.engine.in_flight
        bench.feed.shorten(execution, 0)
        await asyncio.wait_for(execution.finished, 10)
        assert bench.engine.in_flight == 0
    # Those that have ended are in flight until the host has said so.
    assert 1 <= most <= 3 * 3


async def test_what_is_cut_off_is_given_back(build: Build) -> None:
    """Also iterations that wait for an answer, or catch what cuts them off; users go on with the next."""
    source = """
        import gevent
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            @task
            def visit(self):
                if self.oku.index >= 100:
                    self.client.get("/fast")
                elif self.oku.index % 2:
                    self.client.get("/slow/60")
                else:
                    try:
                        gevent.sleep(60)
                    except BaseException:
                        pass
        """
    async with build(source, concurrency=6) as bench:
        stuck = bench.begin((0, 6))
        await until(lambda: stuck.taken == 6)
        await asyncio.sleep(0.5)
        bench.engine.cancel(stuck)
        await asyncio.wait_for(stuck.finished, 10)
        following = bench.begin((100, 130))
        await asyncio.wait_for(following.finished, 10)
    assert count_outcomes(stuck) == {}
    assert sorted(stuck.given_back) == list(range(6))
    assert count_outcomes(following) == {"ok": 30}


async def test_a_killed_host_loses_nothing(build: Build, site: HostileServer) -> None:
    """Each index has ended once or was given back; what was given back untouched was not asked for."""
    async with build(SLOW, concurrency=20) as bench:
        execution = bench.begin((0, 3000))
        for count in (200, 400, 600):
            await until(partial(has_ended, execution, count))
            [host] = list_children()
            os.kill(host, signal.SIGKILL)
            await until(partial(is_replaced, host))
        await asyncio.wait_for(execution.finished, 60)
    outcomes = count_outcomes(execution)
    assert set(outcomes) == {"ok"}
    check_conservation(execution, 3000)
    asked = Counter(int(target.rpartition("/")[2]) for target in site.targets)
    assert not set(execution.untouched) & set(asked)
    assert set(asked.values()) == {1}
    begun = len(execution.given_back) - len(execution.untouched)
    assert outcomes["ok"] <= len(asked) <= outcomes["ok"] + begun
    assert begun <= 3 * 20 * 2


async def test_a_host_that_is_blocked_is_replaced(build: Build) -> None:
    """One user that never lets the others run ends no run: what it had begun is given back."""
    source = """
        from locust import User, task

        class Visitor(User):
            @task
            def visit(self):
                while self.oku.index == 20:
                    pass
        """
    async with build(source, silent_s=1.5) as bench:
        execution = await bench.run(60)
    check_conservation(execution, 60)
    assert 20 in execution.given_back
    assert 20 not in execution.untouched


async def test_a_locustfile_that_ends_the_test_is_not_run_again(build: Build) -> None:
    """What it has done counts, the rest is given back, and why it has ended is said."""
    source = """
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            @task
            def visit(self):
                self.client.get("/visit")
                if self.oku.index == 30:
                    self.environment.runner.quit()
        """
    async with build(source) as bench:
        execution = bench.begin((0, 10_000))
        await until(lambda: bench.engine.fault != "")
        await asyncio.wait_for(execution.finished, 10)
    expected = "the locustfile has ended the test: environment.runner.quit() (locustfile.py:9)"
    assert bench.engine.fault == expected
    check_conservation(execution, execution.taken)
    assert 25 <= sum(execution.outcomes) < 10_000


async def test_output_of_user_code_is_in_the_log(build: Build, caplog: object, tmp_path: Path) -> None:
    """A relative path is one beside the locustfile, and may be written."""
    source = """
        import pathlib
        from locust import User, task

        class Visitor(User):
            @task
            def visit(self):
                here = pathlib.Path("notes.txt")
                here.write_text("hello")
                assert here.read_text() == "hello"
        """
    async with build(source) as bench:
        execution = await bench.run(10)
    assert count_outcomes(execution) == {"ok": 10}


def check_conservation(execution: Execution, count: int) -> None:
    """Every index that was taken has ended, or was given back."""
    assert sum(execution.outcomes) + len(execution.given_back) == count
    assert len(set(execution.given_back)) == len(execution.given_back)


def is_kept(execution: Execution) -> bool:
    """Whether it has come to its end and is kept open."""
    return execution.is_kept


async def test_requests_of_on_stop_are_counted(build: Build, site: HostileServer) -> None:
    """Users stop before what they did is accounted for the last time, and others come if there is more."""
    source = """
        from locust import HttpUser, TaskSet, task

        class Pages(TaskSet):
            def on_stop(self):
                self.client.get("/close")

            @task
            def visit(self):
                self.client.get("/visit")

        class Visitor(HttpUser):
            tasks = [Pages]

            def on_start(self):
                self.client.get("/enter")

            def on_stop(self):
                self.client.get("/status/500", name="leave")
        """
    async with build(source, concurrency=3) as bench:
        assert bench.engine.has_farewell
        for turn in (1, 2):
            execution = bench.begin((10 * turn, 10 * turn + 10))
            execution.keeper = _Keeper()
            await until(partial(is_kept, execution))
            await bench.engine.run_farewell(execution)
            assert site.targets.count("/status/500") == site.targets.count("/enter") == 3 * turn
            execution.release()
            requests = count_requests(execution)
            assert requests["GET leave"] == {"unexpected_status": 3}
            assert requests["GET /close"] == {"ok": 3}
            assert requests["GET /visit"] == {"ok": 10}
            assert count_outcomes(execution) == {"ok": 10}


async def test_users_that_do_not_stop_are_not_waited_for_long(build: Build) -> None:
    """What they do after that is not counted."""
    source = SLOW + "\n        def on_stop(self):\n            import gevent\n            gevent.sleep(60)\n"
    async with build(source, concurrency=2) as bench:
        execution = bench.begin((0, 4))
        execution.keeper = _Keeper()
        await until(partial(is_kept, execution))
        async with asyncio.timeout(10):
            await bench.engine.run_farewell(execution)


async def test_without_an_on_stop_nobody_is_waited_for(build: Build) -> None:
    """Its last lease ends at once."""
    async with build(SLOW) as bench:
        assert not bench.engine.has_farewell


GIVING_UP = """
    from locust import SequentialTaskSet, TaskSet, User, task

    class Shop(TaskSet):
        def on_start(self):
            self.interrupt(RESCHEDULE)

        @task
        def buy(self):
            pass

    class Mall(TaskSet):
        tasks = [Shop]

    class Day(SequentialTaskSet):
        tasks = [*[Shop] * 10, lambda tasks: None]

    class Visitor(User):
        wait_time = lambda user: 0
        tasks = [TASKS]
    """


class _Keeper:
    """Keeps every execution open."""

    def keeps_open(self, _: Execution) -> bool:
        """Whichever it is."""
        return True


@pytest.mark.parametrize("reschedule", ["True", "False"])
async def test_users_that_give_up_all_their_tasks_end_a_run(build: Build, reschedule: str) -> None:
    """They never come to a task, and say why."""
    source = GIVING_UP.replace("RESCHEDULE", reschedule).replace("TASKS", "Shop, Mall")
    async with build(source) as bench:
        execution = await bench.run(40)
    assert count_outcomes(execution) == {"exception": 40}
    assert list_reasons(execution) == {
        "TaskSetGaveUpError: Shop was interrupted before its first task (locustfile.py:6 in on_start)": 40
    }


async def test_a_set_of_tasks_may_look_whether_it_is_its_turn(build: Build) -> None:
    """It costs nothing if its user comes to a task soon enough."""
    async with build(GIVING_UP.replace("RESCHEDULE", "").replace("TASKS", "Day")) as bench:
        execution = await bench.run(40)
    assert count_outcomes(execution) == {"ok": 40}
