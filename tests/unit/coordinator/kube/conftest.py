"""A cluster in memory, behind real HTTP."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration
from tests.unit.coordinator.kube.twin import TOKEN, Kubernetes

from oku_coordinator.kube.cluster import Cluster


@pytest.fixture
def kubernetes() -> Kubernetes:
    """Two Deployments without pods, `w` of workers and `s` of delay servers."""
    return Kubernetes()


@pytest.fixture
async def cluster(kubernetes: Kubernetes) -> AsyncIterator[Cluster]:
    """A client of it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", kubernetes.answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/")).rstrip("/")
        cluster = Cluster("oku", Configuration(host=url, api_key={"BearerToken": TOKEN}))
        yield cluster
        await cluster.close()
