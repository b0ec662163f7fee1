"""What becomes of an iteration of a locustfile, and of the requests in it."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from tests.kit.servers.hostile_server import HostileServer
from tests.kit.workers.locust_bench import (
    LocustBench,
    count_outcomes,
    count_requests,
    list_reasons,
)

Build = Callable[..., LocustBench]
KINDS = pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])


def write_task(kind: str, *lines: str) -> str:
    """A locustfile with one task of these lines."""
    head = ["import gevent", f"from locust import {kind}, task", f"class Visitor({kind}):"]
    return "\n".join([*head, "    @task", "    def visit(self):", *(f"        {line}" for line in lines)])


@KINDS
@pytest.mark.parametrize(
    ("path", "outcome", "status"),
    [
        ("/status/503", "unexpected_status", 503),
        ("/status/404", "unexpected_status", 404),
        ("/reset", "disconnected", 0),
        ("/hangup", "disconnected", 0),
        ("/short", "disconnected", 0),
        ("/garbage", "protocol_error", 0),
        ("/slow/5", "timeout", 0),
        ("http://127.0.0.1:9/", "connect_error", 0),
        ("http://no-such-name.invalid/", "connect_error", 0),
    ],
)
async def test_a_failed_request_fails_its_iteration(
    build: Build, kind: str, path: str, outcome: str, status: int
) -> None:
    """Its own outcome is the one of the transport, as with every engine; the user goes on."""
    async with build(write_task(kind, f"self.client.get({path!r}, name='it')"), timeout_s=0.4) as bench:
        execution = await bench.run(6)
    assert count_outcomes(execution) == {"failed_check": 6}
    assert count_requests(execution) == {"GET it": {outcome: 6}}
    assert execution.inner["", "GET it"].statuses == ({status: 6} if status else {})
    [reason] = list_reasons(execution)
    assert reason.startswith("GET it: ")
    assert not any(part in reason for part in ("0x", "127.0.0.1", "invalid"))


@KINDS
async def test_a_locustfile_may_judge_answers_itself(build: Build, kind: str) -> None:
    """`catch_response` says what is a success and what is not, and why."""
    source = write_task(
        kind,
        "with self.client.get('/status/404', name='missing', catch_response=True) as response:",
        "    if response.status_code == 404:",
        "        response.success()",
        "with self.client.get('/fine', catch_response=True) as response:",
        "    if self.oku.index % 2:",
        "        response.failure('no data')",
    )
    async with build(source) as bench:
        execution = await bench.run(40)
    assert count_outcomes(execution) == {"failed_check": 20, "ok": 20}
    assert list_reasons(execution) == {"GET /fine: no data": 20}
    assert count_requests(execution) == {
        "GET /fine": {"failed_check": 20, "ok": 20},
        "GET missing": {"ok": 40},
    }


@KINDS
async def test_reasons_are_the_same_on_each_worker(build: Build, kind: str) -> None:
    """`rest` writes a traceback into the reason; where files stand is not in it, and the place is."""
    source = write_task(
        kind,
        "with self.rest('GET', '/fine', name='it') as response:",
        "    response.js['token']",
    )
    async with build(source) as bench:
        execution = await bench.run(6)
    [reason] = list_reasons(execution)
    assert reason.startswith(
        "GET it: TypeError: 'NoneType' object is not subscriptable at locust/user/users.py:"
    )
    assert " in rest, locustfile.py:7 in visit" in reason


async def test_an_exception_ends_its_iteration_and_no_more(build: Build, site: HostileServer) -> None:
    """It is counted with its traceback, listeners hear of it once, and the user goes on."""
    source = """
        import requests
        from locust import FastHttpUser, events, task

        @events.user_error.add_listener
        def hear(user_instance, exception, tb, **_):
            requests.get(user_instance.user.host + "/heard")

        class Visitor(FastHttpUser):
            @task
            def visit(self):
                self.client.get("/before")
                if self.oku.index % 4 == 0:
                    raise ValueError("no such thing")
        """
    async with build(source) as bench:
        execution = await bench.run(40)
        async with asyncio.timeout(10):
            while site.targets.count("/heard") < 10:  # noqa: ASYNC110  # after the iteration has ended
                await asyncio.sleep(0.01)
    assert count_outcomes(execution) == {"exception": 10, "ok": 30}
    assert Counter(site.targets) == {"/before": 40, "/heard": 10}
    [reason] = list_reasons(execution)
    assert reason == "ValueError: no such thing (locustfile.py:14 in visit)"
    assert execution.tracebacks[reason].splitlines()[-3:] == [
        '  File "locustfile.py", line 14, in visit',
        '    raise ValueError("no such thing")',
        "ValueError: no such thing",
    ]


async def test_an_iteration_has_a_limit(build: Build) -> None:
    """Also where user code catches what it is ended with; what waits in it is cut off."""
    source = write_task(
        "FastHttpUser",
        "kind = self.oku.index % 4",
        "if kind == 0:",
        "    gevent.sleep(60)",
        "elif kind == 1:",
        "    self.client.get('/slow/60')",
        "elif kind == 2:",
        "    try:",
        "        gevent.sleep(60)",
        "    except BaseException:",
        "        pass",
        "else:",
        "    self.client.get('/fast')",
    )
    async with build(source, iteration_timeout_s=0.3) as bench:
        execution = await bench.run(20)
    assert count_outcomes(execution) == {"ok": 5, "timeout": 15}
    assert list_reasons(execution) == {"no end within 0.3s": 15}


async def test_a_user_that_cannot_begin_ends_iterations(build: Build) -> None:
    """Each of its attempts costs one, with the reason: a run with a broken `on_start` ends, and says so."""
    source = """
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            def on_start(self):
                raise KeyError("token")

            @task
            def visit(self):
                self.client.get("/visit")
        """
    async with build(source) as bench:
        execution = await bench.run(12)
    assert count_outcomes(execution) == {"exception": 12}
    assert list_reasons(execution) == {"KeyError: 'token' (locustfile.py:6 in on_start)": 12}


async def test_a_user_that_cannot_be_made_ends_iterations(build: Build) -> None:
    """As one that cannot begin."""
    source = """
        from locust import User, task

        class Visitor(User):
            def __init__(self, environment):
                super().__init__(environment)
                self.token = environment.no_such_thing

            @task
            def visit(self):
                pass
        """
    async with build(source) as bench:
        execution = await bench.run(12)
    assert count_outcomes(execution) == {"exception": 12}


async def test_users_that_stop_at_their_start_are_not_missed(build: Build) -> None:
    """As long as one works, it does the work of all."""
    source = """
        from locust import FastHttpUser, task
        from locust.exception import StopUser

        names = ["one", "two"]

        class Visitor(FastHttpUser):
            def on_start(self):
                if not names:
                    raise StopUser
                self.name = names.pop()

            @task
            def visit(self):
                self.client.get("/" + self.name)
        """
    async with build(source, concurrency=6) as bench:
        execution = await bench.run(40)
    assert count_outcomes(execution) == {"ok": 40}
    assert set(count_requests(execution)) == {"GET /one", "GET /two"}


async def test_a_run_whose_users_have_all_stopped_ends(build: Build) -> None:
    """Nobody would carry its iterations out."""
    source = """
        from locust import FastHttpUser, task
        from locust.exception import StopUser

        class Visitor(FastHttpUser):
            def on_start(self):
                raise StopUser

            @task
            def visit(self):
                self.client.get("/visit")
        """
    async with build(source) as bench:
        execution = await bench.run(12)
    assert count_outcomes(execution) == {"exception": 12}
    assert list_reasons(execution) == {"StopUser: every user has stopped at its start": 12}


async def test_a_wait_time_that_fails_ends_no_run(build: Build) -> None:
    """Its user is replaced, and its exception costs an iteration."""
    source = """
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            def wait_time(self):
                raise ZeroDivisionError

            @task
            def visit(self):
                self.client.get("/visit")
        """
    async with build(source) as bench:
        execution = await bench.run(40)
    outcomes = count_outcomes(execution)
    assert sum(outcomes.values()) == 40
    assert outcomes["ok"] >= 15
    assert outcomes["exception"] >= 15


async def test_a_task_that_exits_does_not_end_the_others(build: Build) -> None:
    """`sys.exit` in a task is an exception of it."""
    source = write_task("FastHttpUser", "raise SystemExit(3)")
    async with build(source) as bench:
        execution = await bench.run(10)
    assert count_outcomes(execution) == {"exception": 10}


async def test_requests_outside_of_iterations_are_counted_beside_them(build: Build) -> None:
    """Those of `on_start` belong to no iteration, so one that fails there fails none."""
    source = """
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            def on_start(self):
                self.client.get("/status/500", name="start")

            @task
            def visit(self):
                self.client.get("/visit")
        """
    async with build(source, concurrency=3) as bench:
        execution = await bench.run(60)
        await asyncio.sleep(0)
    assert count_outcomes(execution) == {"ok": 60}
    assert count_requests(execution) == {"GET /visit": {"ok": 60}, "GET start": {"unexpected_status": 3}}
