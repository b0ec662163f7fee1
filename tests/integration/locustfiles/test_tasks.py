"""Each leaf task is an iteration, whatever the tasks of a locustfile are made of."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

import pytest
from tests.kit.servers.hostile_server import HostileServer
from tests.kit.workers.locust_bench import LocustBench, count_outcomes, count_requests

Build = Callable[..., LocustBench]


@pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])
async def test_each_task_is_one_iteration(build: Build, site: HostileServer, kind: str) -> None:
    """There are exactly as many as were handed out, with two requests in each, by their names."""
    source = f"""
        from locust import {kind}, task

        class Visitor({kind}):
            @task
            def visit(self):
                self.client.get("/first")
                self.client.post("/second", json={{"a": 1}}, name="second one")
        """
    async with build(source) as bench:
        execution = await bench.run(300)
    assert count_outcomes(execution) == {"ok": 300}
    assert count_requests(execution) == {"GET /first": {"ok": 300}, "POST second one": {"ok": 300}}
    assert Counter(site.targets) == {"/first": 300, "/second": 300}
    assert {tally.statuses[200] for tally in execution.inner.values()} == {300}


@pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])
async def test_requests_are_told_apart_by_method_and_name(build: Build, kind: str) -> None:
    """As in Locust: methods share no row, and what has no name is called by its path."""
    source = f"""
        from locust import {kind}, task

        class Visitor({kind}):
            @task
            def visit(self):
                self.client.post("/login", name="login")
                with self.client.rename_request("cart"):
                    self.client.get("/my/cart")
                    self.client.post("/my/cart")
                self.client.delete("/status/500", name="cart")
                self.client.get("/cart?full=1")
                self.client.get("/cart/1", name="/cart/[id]")
                self.client.put("/cart/1", name="/cart/[id]")
        """
    async with build(source) as bench:
        execution = await bench.run(10)
    assert count_requests(execution) == {
        "POST login": {"ok": 10},
        "GET cart": {"ok": 10},
        "POST cart": {"ok": 10},
        "DELETE cart": {"unexpected_status": 10},
        "GET /cart?full=1": {"ok": 10},
        "GET /cart/[id]": {"ok": 10},
        "PUT /cart/[id]": {"ok": 10},
    }


async def test_tasks_have_weights(build: Build) -> None:
    """One with the weight of 9 is picked 9 times as often as one of 1."""
    source = """
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            @task(9)
            def often(self):
                self.client.get("/often")

            @task
            def seldom(self):
                self.client.get("/seldom")
        """
    async with build(source) as bench:
        execution = await bench.run(1000)
    requests = count_requests(execution)
    assert requests["GET /often"]["ok"] + requests["GET /seldom"]["ok"] == 1000
    assert 40 < requests["GET /seldom"]["ok"] < 200


async def test_nested_task_sets_pass_their_iterations_to_their_tasks(build: Build) -> None:
    """Entering and leaving one is none; a task that interrupts is one."""
    source = """
        from locust import FastHttpUser, TaskSet, task

        class Forum(TaskSet):
            def on_start(self):
                self.client.get("/enter")

            def on_stop(self):
                self.client.get("/leave")

            @task(5)
            def read(self):
                self.client.get("/read")

            @task
            def leave(self):
                self.interrupt()

        class Visitor(FastHttpUser):
            tasks = {Forum: 1}

            @task
            def top(self):
                self.client.get("/top")
        """
    async with build(source) as bench:
        execution = await bench.run(400)
    requests = count_requests(execution)
    assert count_outcomes(execution) == {"ok": 400}
    left = 400 - requests["GET /read"]["ok"] - requests["GET /top"]["ok"]
    assert 0 <= left - requests["GET /leave"]["ok"] <= 5
    assert left <= requests["GET /enter"]["ok"] <= left + 5


async def test_sequences_keep_their_order(build: Build, site: HostileServer) -> None:
    """Each user carries out one task after the other, each an iteration."""
    source = """
        from locust import FastHttpUser, SequentialTaskSet, task

        class Steps(SequentialTaskSet):
            @task
            def first(self):
                self.client.get("/1")

            @task
            def second(self):
                self.client.get("/2")

            @task
            def third(self):
                self.client.get("/3")

        class Visitor(FastHttpUser):
            tasks = [Steps]
        """
    async with build(source, concurrency=1) as bench:
        execution = await bench.run(7)
    assert count_outcomes(execution) == {"ok": 7}
    assert site.targets == ["/1", "/2", "/3", "/1", "/2", "/3", "/1"]


async def test_chains_go_from_task_to_task(build: Build, site: HostileServer) -> None:
    """A `MarkovTaskSet` goes on with what follows the last task."""
    source = """
        from locust import FastHttpUser, MarkovTaskSet, transition

        class Chain(MarkovTaskSet):
            @transition("b")
            def a(self):
                self.client.get("/a")

            @transition("a")
            def b(self):
                self.client.get("/b")

        class Visitor(FastHttpUser):
            tasks = [Chain]
        """
    async with build(source, concurrency=1) as bench:
        await bench.run(4)
    assert site.targets == ["/a", "/b", "/a", "/b"]


async def test_a_task_that_reschedules_has_ended(build: Build) -> None:
    """What it raises for Locust is no failure of it."""
    source = """
        from locust import FastHttpUser, task
        from locust.exception import RescheduleTask, RescheduleTaskImmediately

        class Visitor(FastHttpUser):
            @task
            def one(self):
                self.client.get("/one")
                raise RescheduleTask

            @task
            def other(self):
                self.client.get("/other")
                raise RescheduleTaskImmediately
        """
    async with build(source) as bench:
        execution = await bench.run(50)
    assert count_outcomes(execution) == {"ok": 50}
    assert sum(counts["ok"] for counts in count_requests(execution).values()) == 50


async def test_a_user_that_stops_is_followed_by_another(build: Build, site: HostileServer) -> None:
    """So a locustfile may be written as sessions: each new user begins anew."""
    source = """
        from locust import FastHttpUser, task
        from locust.exception import StopUser

        class Visitor(FastHttpUser):
            def on_start(self):
                self.visits = 0
                self.client.get("/enter")

            def on_stop(self):
                self.client.get("/leave")

            @task
            def visit(self):
                self.client.get("/visit")
                self.visits += 1
                if self.visits == 3:
                    raise StopUser
        """
    async with build(source, concurrency=2) as bench:
        execution = await bench.run(30)
    assert count_outcomes(execution) == {"ok": 30}
    targets = Counter(site.targets)
    assert targets["/visit"] == 30
    assert 10 <= targets["/enter"] <= 12


async def test_waiting_is_no_part_of_an_iteration(build: Build) -> None:
    """A user that waits is busy; its pace is kept, and no latency has the wait in it."""
    source = """
        from locust import FastHttpUser, constant_pacing, task

        class Visitor(FastHttpUser):
            wait_time = constant_pacing(0.2)

            @task
            def visit(self):
                self.client.get("/visit")
        """
    async with build(source, concurrency=2) as bench:
        begin = time.monotonic()
        execution = await bench.run(10)
        took_s = time.monotonic() - begin
    assert count_outcomes(execution) == {"ok": 10}
    assert took_s >= 0.75
    assert execution.tallies[0].latency.max_us < 200_000


async def test_on_stop_is_called_when_the_engine_ends(build: Build, site: HostileServer) -> None:
    """Each user says goodbye, and so do the listeners of the end."""
    source = """
        from locust import FastHttpUser, events, task
        import requests

        @events.test_stop.add_listener
        def end(environment, **_):
            requests.get(environment.host + "/test_stop")

        class Visitor(FastHttpUser):
            def on_stop(self):
                self.client.get("/on_stop")

            @task
            def visit(self):
                self.client.get("/visit")
        """
    async with build(source, concurrency=3) as bench:
        await bench.run(30)
    assert Counter(site.targets) == {"/visit": 30, "/on_stop": 3, "/test_stop": 1}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"tags": ("read",)}, {"GET /read", "GET /both"}),
        ({"exclude_tags": ("read",)}, {"GET /write", "GET /none"}),
        ({"tags": ("read", "write"), "exclude_tags": ("write",)}, {"GET /read"}),
    ],
)
async def test_tags_choose_tasks(
    build: Build, chosen: dict[str, tuple[str, ...]], expected: set[str]
) -> None:
    """As Locust chooses them by --tags and --exclude-tags."""
    source = """
        from locust import FastHttpUser, tag, task

        class Visitor(FastHttpUser):
            @tag("read")
            @task
            def read(self):
                self.client.get("/read")

            @tag("write")
            @task
            def write(self):
                self.client.get("/write")

            @tag("read", "write")
            @task
            def both(self):
                self.client.get("/both")

            @task
            def none(self):
                self.client.get("/none")

        class Untagged(FastHttpUser):
            @tag("never")
            @task
            def never(self):
                self.client.get("/none")
        """
    async with build(source, **chosen) as bench:
        execution = await bench.run(80)
    assert set(count_requests(execution)) == expected


async def test_users_are_shared_out_by_weight_and_fixed_count(build: Build, site: HostileServer) -> None:
    """A fixed number goes first, the rest by weight, as in Locust."""
    source = """
        from locust import FastHttpUser, task

        class Base(FastHttpUser):
            abstract = True

            def on_start(self):
                self.client.get(f"/start/{type(self).__name__}")

            @task
            def visit(self):
                self.client.get("/visit")

        class Heavy(Base):
            weight = 3

        class Light(Base):
            weight = 1

        class Admin(Base):
            fixed_count = 2
        """
    async with build(source, concurrency=10) as bench:
        await bench.run(50)
    starts = Counter(target for target in site.targets if target.startswith("/start"))
    assert starts == {"/start/Heavy": 6, "/start/Light": 2, "/start/Admin": 2}


async def test_user_classes_can_be_chosen(build: Build) -> None:
    """The others of the file have no users."""
    source = """
        from locust import FastHttpUser, task

        class One(FastHttpUser):
            @task
            def visit(self):
                self.client.get("/one")

        class Other(FastHttpUser):
            @task
            def visit(self):
                self.client.get("/other")
        """
    async with build(source, user_classes=("Other",)) as bench:
        execution = await bench.run(20)
    assert count_requests(execution) == {"GET /other": {"ok": 20}}


async def test_clients_of_any_kind_are_counted(build: Build) -> None:
    """Whatever tells of a request by the event is counted, also from greenlets that a task has started."""
    source = """
        import gevent
        from locust import User, task

        class Queue(User):
            def push(self, exception=None):
                self.environment.events.request.fire(
                    request_type="queue", name="push", response_time=12.5, response_length=7,
                    exception=exception, context={},
                )

            @task
            def both(self):
                self.push()
                gevent.joinall([gevent.spawn(self.push), gevent.spawn(self.push, ValueError("full"))])
                with self.environment.events.request.measure("queue", "pull"):
                    gevent.sleep(0.001)
        """
    async with build(source, url=None) as bench:
        execution = await bench.run(40)
    assert count_outcomes(execution) == {"failed_check": 40}
    requests = count_requests(execution)
    assert requests == {"queue pull": {"ok": 40}, "queue push": {"failed_check": 40, "ok": 80}}
    assert execution.inner["", "queue push"].bytes_received == 7 * 120


async def test_figures_of_clients_may_be_anything(build: Build) -> None:
    """They are kept within bounds; what is none at all counts as 0."""
    source = """
        from types import SimpleNamespace
        from locust import User, task

        class Odd(User):
            @task
            def tell(self):
                for name, figure, status in (
                    ("huge", 1e30, 4001), ("endless", float("inf"), -1), ("none", float("nan"), None),
                    ("less", -5, 0),
                ):
                    self.environment.events.request.fire(
                        request_type="odd", name=name, response_time=figure, exception=None, context={},
                        response_length=figure, response=SimpleNamespace(status_code=status),
                    )
        """
    async with build(source, url=None) as bench:
        execution = await bench.run(10)
    assert count_outcomes(execution) == {"ok": 10}
    received = {name: tally.bytes_received for (_, name), tally in execution.inner.items()}
    assert received == {"odd huge": 10 << 48, "odd endless": 10 << 48, "odd none": 0, "odd less": 0}


async def test_each_iteration_has_an_index_of_its_own(build: Build, site: HostileServer) -> None:
    """Users and task sets see it, and nothing else does."""
    source = """
        from locust import FastHttpUser, TaskSet, task

        class Inner(TaskSet):
            @task
            def visit(self):
                self.client.get(f"/{self.oku.index}/{self.user.oku.index}")

        class Visitor(FastHttpUser):
            tasks = [Inner]

            def on_start(self):
                try:
                    self.oku.index
                except RuntimeError as error:
                    assert "tasks only" in str(error)
                else:
                    raise AssertionError("there is no index here")
        """
    async with build(source) as bench:
        execution = bench.begin((100, 150), (200, 250))
        await asyncio.wait_for(execution.finished, 30)
    indices = [*range(100, 150), *range(200, 250)]
    assert sorted(site.targets) == sorted(f"/{index}/{index}" for index in indices)
