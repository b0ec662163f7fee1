"""Releases in a real cluster; see CONTRIBUTING.md for how to have one. There is no Grafana in them: what
belongs to it (its configuration, its provisioning, its dashboards) is held by tests/unit/chart,
tests/integration and tests/dashboards.
"""

from collections.abc import Iterator

import pytest
from tests.kit.kubernetes.cluster import Cluster, require_cluster
from tests.kit.kubernetes.release import Release


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Installing, and runs of many requests, take their time."""
    for item in items:
        if "tests/cluster" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster, in which nothing is left when all tests are over."""
    cluster = require_cluster()
    before = cluster.find_traces()
    yield cluster
    cluster.wait_until_clean(before)


@pytest.fixture(scope="session")
def release(cluster: Cluster) -> Iterator[Release]:
    """A release for tests that leave it as it was."""
    with cluster.make_namespace() as namespace:
        release = Release(cluster, namespace)
        release.install()
        yield release
