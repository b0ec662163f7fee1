"""Pods are restarted when what they read has changed, and only then."""

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.chart.cluster import serve_secrets
from tests.unit.chart.rendering import Object, copy_chart, find_kind, find_pods, render, render_with

Data = dict[str, dict[str, str]]

SECRETS: Data = {
    "oku-token": {"token": "t" * 40},
    "oku-message-key": {"message-key": "m" * 40},
    "oku-valkey": {"coordinator-password": "c" * 40, "workers-password": "w" * 40},
    "oku-grafana": {"user": "admin", "password": "p" * 40},
}
READERS = {
    "oku-token": {"coordinator"},
    "oku-message-key": {"coordinator", "workers"},
    "oku-valkey": {"coordinator", "workers", "valkey"},
    "oku-grafana": {"grafana"},
}
EXISTING: dict[str, Any] = {
    "coordinator": {"token": {"existingSecret": "mine"}},
    "broker": {"messageKey": {"existingSecret": "mine"}},
    "valkey": {"password": {"existingSecret": "mine"}},
    "grafana": {"admin": {"existingSecret": "mine"}},
}


def upgrade(folder: Path, secrets: Mapping[str, Mapping[str, str]], **values: Any) -> list[Object]:
    """The objects of a release in a cluster with these Secrets."""
    folder.mkdir()
    with serve_secrets(folder, secrets) as kubeconfig:
        return render_with(kubeconfig, values)


def read_secrets(objects: list[Object]) -> Data:
    """What is in the Secrets that the chart makes."""
    return {
        secret["metadata"]["name"]: {key: b64decode(value).decode() for key, value in secret["data"].items()}
        for secret in find_kind(objects, "Secret")
    }


def list_changed(before: list[Object], after: list[Object]) -> set[str]:
    """The components whose pods an upgrade replaces; that of the test is made anew each time."""
    old, new = find_pods(before), find_pods(after)
    assert old.keys() == new.keys()
    return {component for component in old if old[component] != new[component]} - {"test"}


def list_read(objects: list[Object], kind: str, field: str) -> dict[str, set[str]]:
    """Of each object of a kind that the chart makes, the components whose pods name it in a field."""
    pods = find_pods(objects)
    names = {each["metadata"]["name"] for each in find_kind(objects, kind)}
    found = {name: {part for part, pod in pods.items() if _names(pod["spec"], field, name)} for name in names}
    return {name: parts - {"test"} for name, parts in found.items()}


def _names(value: Any, field: str, name: str) -> bool:
    if isinstance(value, list):
        return any(_names(each, field, name) for each in value)
    if not isinstance(value, dict):
        return False
    said = value.get(field)
    if isinstance(said, dict) and name in {said.get("name"), said.get("secretName")}:
        return True
    return any(_names(each, field, name) for each in value.values())


def test_a_new_value_restarts_the_pods_that_read_its_secret(tmp_path: Path) -> None:
    """Each value of each Secret, and no other pods."""
    before = upgrade(tmp_path / "before", SECRETS)
    wrong = {}
    for secret, data in SECRETS.items():
        for key in data.keys() - {"user"}:  # the chart sets that
            changed = SECRETS | {secret: data | {key: "another-value-of-40-characters-0123456789"}}
            after = upgrade(tmp_path / f"{secret}-{key}", changed)
            if (restarted := list_changed(before, after)) != READERS[secret]:
                wrong[secret, key] = restarted
    assert not wrong


def test_all_secrets_that_pods_read_are_watched(tmp_path: Path) -> None:
    """A pod that comes to read another one has to have its checksum."""
    objects = upgrade(tmp_path / "cluster", SECRETS)
    read: dict[str, set[str]] = {}
    for field in ("secretKeyRef", "secretRef", "secret"):
        for secret, components in list_read(objects, "Secret", field).items():
            read[secret] = read.get(secret, set()) | components
    assert read == READERS


def test_an_upgrade_without_a_change_restarts_nothing(tmp_path: Path) -> None:
    """From the installation on, which has generated the values."""
    installed = upgrade(tmp_path / "installation", {})
    first = upgrade(tmp_path / "first", read_secrets(installed))
    second = upgrade(tmp_path / "second", read_secrets(first))
    assert read_secrets(installed) == read_secrets(first) == read_secrets(second)
    assert find_pods(installed) == find_pods(first) == find_pods(second)


def test_a_secret_that_was_deleted_restarts_its_readers(tmp_path: Path) -> None:
    """So a generated value is changed: the upgrade generates another one."""
    before = upgrade(tmp_path / "before", SECRETS)
    for secret, readers in READERS.items():
        left = {name: data for name, data in SECRETS.items() if name != secret}
        assert list_changed(before, upgrade(tmp_path / secret, left)) == readers, secret


def test_the_version_of_the_chart_restarts_nothing(tmp_path: Path) -> None:
    """It is in the labels of every Secret and ConfigMap, which say nothing to their readers."""
    copy = copy_chart(tmp_path / "chart")
    description = (copy / "Chart.yaml").read_text()
    (copy / "Chart.yaml").write_text(re.sub(r"(?m)^version: .*", "version: 99.0.0", description))
    before = upgrade(tmp_path / "before", SECRETS)
    with serve_secrets(tmp_path, SECRETS) as kubeconfig:
        after = render_with(kubeconfig, chart=copy)
    assert find_kind(before, "ConfigMap") != find_kind(after, "ConfigMap")
    assert list_changed(before, after) == set()


@pytest.mark.parametrize(("values", "readers"), [
    ({"grafana": {"rootUrl": "https://grafana.example.com"}}, {"grafana"}),
    ({"loki": {"retention": "24h"}}, {"loki"}),
])  # fmt: skip
def test_a_new_configuration_restarts_its_readers(values: dict[str, Any], readers: set[str]) -> None:
    """And no other pods; nothing is generated here."""
    changed = {part: EXISTING.get(part, {}) | settings for part, settings in values.items()}
    assert list_changed(render(EXISTING), render(EXISTING | changed)) == readers


def test_all_configurations_that_pods_read_are_watched() -> None:
    """Their pods have a checksum of them; the pod of the test is made anew each time."""
    objects = render(EXISTING)
    read = list_read(objects, "ConfigMap", "configMap")
    readers = set().union(*read.values())
    annotated = {
        component
        for component, pod in find_pods(objects).items()
        if "checksum/config" in pod["metadata"].get("annotations", {})
    }
    assert readers == annotated == {"valkey", "loki", "grafana"}


def test_secrets_of_ones_own_have_no_checksum() -> None:
    """The chart reads none of them; so two renderings without a cluster are the same, too."""
    objects = render(EXISTING)
    assert "checksum/secrets" not in json.dumps([pod["metadata"] for pod in find_pods(objects).values()])
    render.__globals__["_template"].cache_clear()
    assert find_pods(objects) == find_pods(render(EXISTING))
