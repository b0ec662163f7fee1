"""Renders the chart as `helm template` does, for tests that look at what comes out."""

import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from docs.tools.manifests import KUBERNETES, find_helm
from tests.kit.requirement import miss

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "oku"
VALUE_FILES = tuple(
    ROOT / "k8s" / "values" / f"{name}.yaml" for name in ("laptop", "production", "existing-grafana", "tests")
)

COMPONENTS = ("coordinator", "workers", "servers", "valkey", "loki", "grafana")
"""Those with a `pod` of their own; `helm test` has that of the coordinator."""

Object = dict[str, Any]

_FOLDER = tempfile.TemporaryDirectory()


def require_helm() -> str:
    """The program; skips without, fails in CI."""
    helm = find_helm()
    if helm is None:
        miss("there is no helm: put it on the path, or set OKU_HELM to its path")
    return helm


def render(
    values: Mapping[str, Any] | None = None,
    *,
    release: str = "oku",
    namespace: str = "load",
    files: Sequence[Path] = (),
    chart: Path | None = None,
) -> list[Object]:
    """All objects of the chart with these values, those of `helm test` among them.

    Its dashboards are empty unless `chart` is the chart itself: they take a third of the time.
    """
    return _load(_template(json.dumps(values or {}), release, namespace, tuple(files), chart=chart))


def render_with(
    kubeconfig: Path, values: Mapping[str, Any] | None = None, chart: Path | None = None
) -> list[Object]:
    """All objects of a release that looks up what its cluster has."""
    options = ("--dry-run=server", "--kubeconfig", str(kubeconfig))
    return _load(_template(json.dumps(values or {}), "oku", "load", (), options, chart))


def refuse(values: Mapping[str, Any]) -> str:
    """What Helm says of values that are refused."""
    done = _template(json.dumps(values), "oku", "load", ())
    assert done.returncode != 0, "these values are taken"
    return done.stderr


def evaluate(template: str, values: Mapping[str, Any], folder: Path) -> Object:
    """The mapping that a template gives which stands beside those of the chart, in a copy of it."""
    copy = copy_chart(folder / "oku")
    (copy / "templates" / "evaluated.yaml").write_text(template)
    options = ("--show-only", "templates/evaluated.yaml")
    (loaded,) = _load(_template(json.dumps(values), "oku", "load", (), options, copy))
    return loaded


def copy_chart(folder: Path) -> Path:
    """A copy of the chart in a new folder, with empty dashboards."""
    shutil.copytree(CHART, folder)
    for path in folder.glob("dashboards/*.json"):
        path.write_text("{}")
    return folder


@functools.cache
def _get_copy() -> Path:
    return copy_chart(Path(_FOLDER.name) / "oku")


@functools.cache
def _template(
    values: str,
    release: str,
    namespace: str,
    files: tuple[Path, ...],
    options: tuple[str, ...] = (),
    chart: Path | None = None,
) -> "subprocess.CompletedProcess[str]":
    folder = chart or _get_copy()
    command = [require_helm(), "template", release, str(folder), "--namespace", namespace]
    command += ["--kube-version", KUBERNETES, *options]
    for file in files:
        command += ["--values", str(file)]
    # JSON is YAML, and standard input a file. Helm ends before it has much garbage to collect.
    return subprocess.run(
        [*command, "--values", "-"],
        input=values,
        env=os.environ | {"GOGC": "400"},
        capture_output=True,
        text=True,
        check=False,
    )


def _load(done: "subprocess.CompletedProcess[str]") -> list[Object]:
    assert done.returncode == 0, done.stderr
    # PyYAML's own loader takes seconds for the dashboards.
    return [loaded for loaded in yaml.load_all(done.stdout, yaml.CSafeLoader) if loaded]


def find(objects: Sequence[Object], kind: str, name: str) -> Object:
    """The object of this kind and name."""
    found = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    assert len(found) == 1, f"{len(found)} {kind} {name}"
    return found[0]


def find_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """All objects of a kind."""
    return [each for each in objects if each["kind"] == kind]


def find_pods(objects: Sequence[Object]) -> dict[str, Object]:
    """Of each object that has a pod, its component and the pod: metadata and spec."""
    pods = [
        each if each["kind"] == "Pod" else each["spec"]["template"]
        for each in objects
        if each["kind"] in {"Deployment", "StatefulSet", "Pod"}
    ]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in pods}


def read_environment(pod: Object) -> dict[str, Any]:
    """The variables of a pod's container: text, or where it comes from."""
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container.get("env", [])}


def read_limits(pod: Object) -> dict[str, Any]:
    """The size limits of a pod's volumes."""
    volumes = pod["spec"]["volumes"]
    return {each["name"]: each.get("emptyDir", {}).get("sizeLimit") for each in volumes}
