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
) -> list[Object]:
    """All objects of the chart with these values, those of `helm test` among them."""
    return _load(_template(json.dumps(values or {}), release, namespace, tuple(files)))


def render_with(
    kubeconfig: Path, values: Mapping[str, Any] | None = None, chart: Path = CHART
) -> list[Object]:
    """All objects of a release that looks up what its cluster has."""
    options = ("--dry-run=server", "--kubeconfig", str(kubeconfig))
    return _load(_template(json.dumps(values or {}), "oku", "load", (), options, chart))


def refuse(values: Mapping[str, Any]) -> str:
    """What Helm says of values that are refused."""
    bare = Path(_copy_without_dashboards().name) / "oku"
    done = _template(json.dumps(values), "oku", "load", (), (), bare)
    assert done.returncode != 0, "these values are taken"
    return done.stderr


def evaluate(template: str, values: Mapping[str, Any], folder: Path) -> Object:
    """The mapping that a template gives which stands beside those of the chart, in a copy of it."""
    copy = folder / "oku"
    shutil.copytree(CHART, copy)
    (copy / "templates" / "evaluated.yaml").write_text(template)
    options = ("--show-only", "templates/evaluated.yaml")
    (loaded,) = _load(_template(json.dumps(values), "oku", "load", (), options, copy))
    return loaded


@functools.cache
def _copy_without_dashboards() -> "tempfile.TemporaryDirectory[str]":
    """They take a third of the time, and have no part in what is refused."""
    folder = tempfile.TemporaryDirectory()
    shutil.copytree(CHART, Path(folder.name) / "oku", ignore=shutil.ignore_patterns("dashboards"))
    return folder


@functools.cache
def _template(
    values: str,
    release: str,
    namespace: str,
    files: tuple[Path, ...],
    options: tuple[str, ...] = (),
    chart: Path = CHART,
) -> "subprocess.CompletedProcess[str]":
    command = [require_helm(), "template", release, str(chart), "--namespace", namespace]
    command += ["--kube-version", KUBERNETES, *options]
    for file in files:
        command += ["--values", str(file)]
    # JSON is YAML, and standard input a file. Helm ends before it needs to collect garbage.
    return subprocess.run(
        [*command, "--values", "-"],
        input=values,
        env=os.environ | {"GOGC": "off"},
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
