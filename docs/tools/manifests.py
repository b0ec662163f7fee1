"""Renders the chart into k8s/plain, for people without Helm; does nothing where `helm` is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_VALUES = _ROOT / "k8s" / "values"
_PLAIN = _ROOT / "k8s" / "plain"

KUBERNETES = "1.30.0"
"""The oldest version that the chart supports; a Helm built without a version assumes an older one."""
FLAVOURS = ("laptop", "production")
"""The value files that plain manifests are made from."""


def build_manifests() -> dict[Path, str]:
    """The manifests, each with the text that it must contain; without Helm none, and a line that says so."""
    helm = find_helm()
    if helm is None:
        sys.stderr.write("helm is not installed: k8s/plain is left as it is\n")
        return {}
    return {_PLAIN / flavour / "oku.yaml": _render(helm, flavour) for flavour in FLAVOURS}


def find_helm() -> str | None:
    """The program: `OKU_HELM`, `helm` on the path, or the one that a local cluster has built."""
    cache = os.environ.get("LOCAL_CLUSTER_CACHE", Path.home() / ".cache" / "local-cluster")
    places = [os.environ.get("OKU_HELM"), shutil.which("helm"), str(Path(cache) / "bin" / "helm")]
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def _render(helm: str, flavour: str) -> str:
    # Hooks and generated Secrets need Helm itself, so plain manifests have neither.
    command = [
        helm, "template", "oku", str(_ROOT / "charts" / "oku"), "--namespace", "oku", "--no-hooks",
        "--kube-version", KUBERNETES,
        "--values", str(_VALUES / f"{flavour}.yaml"), "--values", str(_VALUES / "plain.yaml"),
    ]  # fmt: skip
    rendered = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # no input
    if rendered.returncode != 0:
        raise RuntimeError(rendered.stderr.strip())
    head = f"# Generated from charts/oku with k8s/values/{flavour}.yaml and plain.yaml; change those.\n"
    return head + rendered.stdout
