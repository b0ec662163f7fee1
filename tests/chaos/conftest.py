from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
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
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `oku` in the background."""
    with starting_runs(tmp_path) as start_run:
        yield start_run


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
