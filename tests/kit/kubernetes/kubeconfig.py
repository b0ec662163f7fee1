"""Configurations of kubectl, Helm and `oku --kube`, whose current context is that of a cluster of tests."""

import json
import os
from pathlib import Path

from tests.kit.kubernetes.cluster import Cluster
from tests.kit.runs.local_run import OKU


def build_environment(cluster: Cluster, folder: Path, token: str = "") -> dict[str, str]:
    """The environment of a user who types commands without a context; `oku` is on the path.

    Args:
        cluster: the cluster of the current context.
        folder: where the configuration is written.
        token: of a ServiceAccount; empty for the user of the tests.
    """
    view = cluster.call("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
    config = json.loads(view)
    if token:
        config["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig.json"
    path.write_text(json.dumps(config))
    own = {name: value for name, value in os.environ.items() if not name.startswith("OKU_")}
    return own | {"KUBECONFIG": str(path), "PATH": f"{Path(OKU[0]).parent}:{os.environ['PATH']}"}
