from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.brokers.message_key import exported_message_key
from tests.kit.runs.local_run import Start, starting_runs
from tests.kit.workers.engine_fixtures import serve, serve_http2, worker

from oku_core.spec.spec import HTTP1_ENGINES, Engine

__all__ = ["serve", "serve_http2", "worker"]


@pytest.fixture(scope="session", autouse=True)
def message_key() -> Iterator[None]:
    """Processes sign with the key of tests."""
    with exported_message_key():
        yield


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `oku` in the background."""
    with starting_runs(tmp_path) as start_run:
        yield start_run


@pytest.fixture(params=HTTP1_ENGINES, ids=str)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine that sends the requests of a spec: all count alike."""
    assert isinstance(request.param, Engine)
    return request.param
