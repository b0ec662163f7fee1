"""The broker of a run is killed, and comes back with its data or without."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.brokers.broker import RealBroker
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import Start

from oku_core.spec.spec import Engine


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RealBroker]:
    """A broker that listens."""
    (tmp_path / "broker").mkdir()
    broker = RealBroker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.end()


@pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])
def test_the_broker_is_killed_and_restarted_with_its_data(start_load: Start, broker: RealBroker) -> None:
    """Four deaths of the broker cost no request and no worker."""
    run = start_load(22_500, "--broker-url", broker.url)
    for _ in range(4):
        run.wait_for_accounted(run.lengths().accounted + 2_500)
        broker.kill()
        broker.start()

    summary = run.finish()

    assert_completed(summary)
    # Workers execute the leases that they have without it.
    assert "died (exit code" not in run.output
    assert not any(worker["lost"] for worker in summary["workers"])


@pytest.mark.parametrize("engine", [Engine.AIOHTTP])
def test_the_broker_is_killed_and_restarted_empty(
    start_load: Start, broker: RealBroker, tmp_path: Path
) -> None:
    """Messages are hints: when all of them are lost, what they stood for is sent again."""
    run = start_load(18_000, "--range-size", "1000", "--broker-url", broker.url)
    run.wait_for_accounted(5_000)
    broker.kill()
    shutil.rmtree(tmp_path / "broker" / "appendonlydir")
    broker.start()

    summary = run.finish()

    assert_completed(summary)
