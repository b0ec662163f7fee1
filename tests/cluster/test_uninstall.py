"""What is left of a release that was removed, and what another makes of it."""

import re
from pathlib import Path

from tests.kit.kubernetes.cluster import Cluster
from tests.kit.kubernetes.pod_run import start_pod_run
from tests.kit.kubernetes.release import Release, wait_until_published
from tests.kit.loki.loki_account import assert_published
from tests.kit.runs.account import assert_completed

_FLAGS = ("--requests", "20k", "--workers", "1", "--servers", "1", "--name", "before")


def test_volumes_stay_and_a_new_release_takes_them_up(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing else stays; the new release shows the old run, and its Loki has its lines."""
    with cluster.make_namespace() as namespace:
        empty = cluster.fetch_objects(namespace)
        release = Release(cluster, namespace)
        notes = release.install()
        with start_pod_run(release, tmp_path, *_FLAGS) as run:
            run.wait_for_end(120)
            wait_until_published(run.api)
            summary = run.summary
        assert_completed(summary)
        release.uninstall()

        left = {name.split("/")[1] for name in cluster.fetch_objects(namespace) - empty}
        assert left == find_kept(notes) == {"oku-ledger", "oku-loki"}
        traces = {name.split("/")[0] for name in cluster.find_traces(namespace)}
        assert traces == {"namespace", "persistentvolume"}

        release.install()
        assert f"{summary['run']}  completed" in release.oku("runs")
        with release.open_api() as api, release.open_loki() as loki:
            assert api.summary(summary["run"]) == summary
            assert_published(loki, summary)


def find_kept(notes: str) -> set[str]:
    """The claims that the notes say are left."""
    found = re.search(r"delete persistentvolumeclaim (.+)", notes)
    assert found is not None
    return set(found[1].split())
