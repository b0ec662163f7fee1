"""What the chart says of itself, and the objects that its users add."""

import base64
import subprocess
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import yaml
from docs.tools.owned_names import check
from tests.kit.kubernetes.platform_values import OBJECTS
from tests.unit.chart.rendering import CHART, find, refuse, render, require_helm

ABOUT: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())


def test_helm_has_nothing_to_recommend() -> None:
    """An icon that is missing is only an [INFO], which `--strict` lets pass."""
    command = [require_helm(), "lint", "--strict", "--kube-version", "1.30.0", str(CHART)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [line for line in done.stdout.splitlines() if line.startswith("[")]


def test_home_and_sources_are_addresses_of_an_owner() -> None:
    """The sources are Oku's and those of each image that the chart brings."""
    repositories = [value["image"]["repository"] for value in _read_values().values() if "image" in value]
    for url in (ABOUT["home"], *ABOUT["sources"]):
        assert urlsplit(url).scheme == "https"
        assert list(check(url)) == []
    names = {url.rpartition("/")[2] for url in ABOUT["sources"]}
    assert names == {repository.rpartition("/")[2] for repository in repositories} | {"oku.git"}


def test_the_icon_is_a_picture_that_nobody_fetches() -> None:
    """It is in the address itself: the square of an SVG without links and scripts."""
    kind, _, text = ABOUT["icon"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    root = ET.fromstring(base64.b64decode(text, validate=True))
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert (left, top, width) == (0, 0, height)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {"svg", "rect", "path"}


def test_objects_of_ones_own_are_templates() -> None:
    """A mapping or a text; both may use the release, the values and the names of the chart."""
    values = {"extraObjects": OBJECTS, "coordinator": {"service": {"port": 9000}}}
    objects = render(values, release="night", namespace="there")
    extra = find(objects, "ConfigMap", "night-extra")
    assert extra["data"] == {"coordinator": "http://night-coordinator.there.svc:9000"}
    assert find(objects, "ConfigMap", "night-text")
    assert len(objects) == len(render(release="night", namespace="there")) + len(OBJECTS)


def test_what_is_no_object_is_refused_by_its_number() -> None:
    """Helm itself would say only that some YAML cannot be read."""
    whole = OBJECTS[0]
    for wrong in (
        "hello", "kind: [", "", "a: 1\\n---\\nb: 2",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: x}",
        whole | {"metadata": {}}, whole | {"metadata": "x"}, whole | {"kind": ""},
        f"{OBJECTS[1]}\n---\n{OBJECTS[1]}",
    ):  # fmt: skip
        said = refuse({"extraObjects": [whole, wrong]})
        assert "extraObjects: number 2 is not one object with apiVersion, kind and metadata.name" in said, (
            wrong
        )


def _read_values() -> dict[str, Any]:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    return {key: value for key, value in values.items() if isinstance(value, dict)}


def test_the_readme_has_a_row_for_each_value_and_refers_to_values_alone() -> None:
    """What the schema calls its parts means nothing to a reader."""
    readme = (CHART / "README.md").read_text()
    values = _read_values()
    paths = {*values, *(f"{key}.{below}" for key in values for below in values[key])}
    assert [path for path in sorted(paths) if f"| `{path}` |" not in readme] == []
    assert "#/" not in readme.partition("## Values")[2]
