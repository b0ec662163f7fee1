import pytest
from tests.kit.workers.engines_in_memory import BuiltEngines, build_runner

from oku_workers.leases.lease_runner import LeaseRunner


@pytest.fixture
def built() -> BuiltEngines:
    """Engines in memory in the place of real ones."""
    return BuiltEngines()


@pytest.fixture
def runner(built: BuiltEngines) -> LeaseRunner:
    """A lease runner that has just begun."""
    return build_runner(built)
