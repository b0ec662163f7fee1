"""Releases beside each other."""

import concurrent.futures

import pytest
from tests.kit.kubernetes.cluster import Cluster
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed

_VALUES = {"loki.enabled": False, "grafana.sidecar.datasource": False}
"""Three of them at once are many pods for a small node."""
_REQUESTS = 20_000
_FLAGS = ("--requests", str(_REQUESTS), "--workers", "1", "--servers", "1")


def test_releases_do_not_touch_each_other(cluster: Cluster) -> None:
    """Two in one namespace and one in another have their own workers and their own tokens."""
    with cluster.make_namespace() as here, cluster.make_namespace() as there:
        sites = [(here, "oku"), (here, "oku-two"), (there, "oku")]
        releases = [Release(cluster, namespace, name, _VALUES) for namespace, name in sites]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(Release.install, releases))
            summaries = list(pool.map(lambda release: release.run(*_FLAGS), releases))
        assert len({release.fetch_token() for release in releases}) == len(releases)
        for release, summary in zip(releases, summaries, strict=True):
            assert_completed(summary)
            assert summary["servers"] == {"served": _REQUESTS}
            workers = {worker["name"] for worker in summary["workers"]}
            assert all(name.startswith(f"{release.name}-workers-") for name in workers)
            with release.open_api() as api:
                assert [run["run"] for run in api.list_runs()] == [summary["run"]]
        all_workers = [worker["name"] for summary in summaries for worker in summary["workers"]]
        assert len(set(all_workers)) == len(all_workers)

        first, second, third = releases
        first.uninstall()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for summary in pool.map(lambda release: release.run(*_FLAGS), (second, third)):
                assert_completed(summary)
        with pytest.raises(AssertionError, match="there is no release oku of Oku"):
            first.oku("runs")
