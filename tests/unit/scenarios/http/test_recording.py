import asyncio

import pytest
from tests.kit.scenarios.http_bench import HttpBench

from oku import RequestError, record
from oku.host_session import RequestResult
from oku.http.scope import Scope


@pytest.fixture
async def bench() -> HttpBench:
    """An iteration has begun."""
    bench = HttpBench()
    bench.begin()
    return bench


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (RequestError("page", "refused"), "failed_check", "page: refused"),
        (AssertionError("no tea"), "failed_check", "no tea"),
        (TimeoutError("too long"), "timeout", "TimeoutError: too long"),
        (asyncio.CancelledError(), "timeout", "given up by the scenario"),
        (KeyError("tea"), "exception", "KeyError: 'tea'"),
    ],
)
async def test_what_goes_through_a_record_says_what_it_counts_as(
    bench: HttpBench, error: BaseException, outcome: str, reason: str
) -> None:
    """It goes on, and the iteration has failed, whoever catches it."""
    with pytest.raises(type(error)):
        async with record("query"):
            raise error
    [counted] = bench.read()
    assert (counted.slot, counted.name, counted.outcome) == (0, "query", outcome)
    assert counted.reason.startswith(reason)
    assert bench.failure == f"query: {counted.reason}"


async def test_a_record_can_be_told_that_it_failed(bench: HttpBench) -> None:
    """The first reason counts."""
    with record("query") as query:
        query.fail("no rows")
        query.fail("nothing at all")
    [counted] = bench.read()
    assert (counted.outcome, counted.reason, bench.failure) == ("failed_check", "no rows", "query: no rows")


async def test_tasks_that_an_iteration_starts_record_in_it(bench: HttpBench) -> None:
    """Each iteration has its own."""

    async def ask(name: str) -> None:
        async with record(name):
            await asyncio.sleep(0)

    await asyncio.gather(ask("a"), ask("b"))
    bench.begin()
    await ask("c")
    assert sorted((counted.slot, counted.name) for counted in bench.read()) == [(0, "a"), (0, "b"), (1, "c")]


async def test_what_is_cut_off_is_not_counted(bench: HttpBench) -> None:
    """It will be tried again from its beginning."""
    bench.scope.is_cut = True
    with pytest.raises(asyncio.CancelledError):
        async with record("query"):
            raise asyncio.CancelledError
    assert bench.read() == []


async def test_the_first_failure_stays(bench: HttpBench) -> None:
    """It is the likeliest cause of the others."""
    bench.scope.fail("first")
    bench.scope.fail("second")
    bench.scope.record(RequestResult("page", 1, 500, 7, 0, "status 500"))
    assert bench.failure == "first"


def test_outside_of_everything_nothing_is_counted() -> None:
    """A hook, or a test of a scenario, may record as well."""
    with record("query"):
        pass
    scope = Scope()
    scope.fail("no")
    scope.record(RequestResult("page", 1, 500, 7, 0, "status 500"))
    assert scope.iteration is None


async def test_a_reason_may_be_anything_that_can_be_printed(bench: HttpBench) -> None:
    """Also nothing: what has failed without a reason has failed all the same."""
    with record("query") as query:
        query.fail("")
    with record("rows") as query:
        query.fail({"rows": 0})
    assert [each.reason for each in bench.read()] == ["a check has failed", "{'rows': 0}"]
    for reason, text in (({"a": 1}, "{'a': 1}"), (404, "404"), ("", "a check has failed")):
        http = bench.begin()
        http.check(condition=False, text=reason)
        assert bench.failure == text
