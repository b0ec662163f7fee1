from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.runs.local_run import LocalRun, Start, starting_runs
from tests.kit.runs.steady_load import LOAD

from oku_core.spec.spec import HTTP1_ENGINES, Engine

_CAMPAIGN = "test_campaign.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long a campaign lasts, and its first seed."""
    parser.addoption("--campaign", metavar="DURATION", help="play random runs for so long, and nothing else")
    parser.addoption("--seed", type=int, default=1, help="of the first run of a campaign")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A campaign is played alone, and only when it is asked for."""
    is_campaign = config.getoption("--campaign") is not None
    left_out = [item for item in items if (item.path.name == _CAMPAIGN) != is_campaign]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(params=HTTP1_ENGINES, ids=str)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine, for what happens to workers and requests; other tests name the one that they take."""
    assert isinstance(request.param, Engine)
    return request.param


@pytest.fixture
def has_broker(request: pytest.FixtureRequest) -> bool:
    """Whether coordinator and workers have a broker between them; a test may ask for both."""
    return bool(getattr(request, "param", False))


@pytest.fixture
def start(tmp_path: Path, *, has_broker: bool) -> Iterator[Start]:
    """Starts `oku` in the background; each data folder has a broker of its own if there is one."""
    with starting_runs(tmp_path) as start_run, ExitStack() as stack:
        urls: dict[str, str] = {}

        def start_with_broker(*arguments: str, data_dir: str = "data") -> LocalRun:
            if data_dir not in urls:
                folder = tmp_path / f"broker-{data_dir}"
                folder.mkdir()
                urls[data_dir] = stack.enter_context(run_broker(folder))
            return start_run(*arguments, "--broker-url", urls[data_dir], data_dir=data_dir)

        yield start_with_broker if has_broker else start_run


@pytest.fixture
def start_load(start: Start, engine: Engine) -> Start:
    """Starts a run of so many requests at a steady rate against delay servers of its own."""
    return lambda requests, *flags, **where: start(
        "run", "--requests", str(requests), "--engine", engine, *LOAD, *flags, **where
    )


@pytest.fixture
def start_both(start: Start) -> Callable[..., dict[Engine, LocalRun]]:
    """Starts such a run with each engine, beside each other: what happens to one takes mostly waiting."""

    def start_each(requests: int, *flags: str) -> dict[Engine, LocalRun]:
        runs: dict[Engine, LocalRun] = {}
        for engine in HTTP1_ENGINES:
            runs[engine] = start(
                "run", "--requests", str(requests), "--engine", engine, *LOAD, *flags, data_dir=str(engine)
            )
        return runs

    return start_each
