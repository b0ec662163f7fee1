import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.chart.rendering import Object, find, find_pods, render

LONG = "a" * 52


def _list_ids(objects: list[Object]) -> set[tuple[str, str, str]]:
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in objects
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "b"), ("a", "a-oku"), (f"{LONG}1", f"{LONG}2"), ("a.b", "a-b"), ("1a", "oku-1a")],
)
def test_two_releases_of_a_namespace_share_no_object(first: str, second: str) -> None:
    """They share neither a name, nor a pod that both select, nor a Secret that both use."""
    one, other = render(release=first), render(release=second)
    assert len(_list_ids(one)) == len(one)
    assert not _list_ids(one) & _list_ids(other)
    assert (
        find_pods(one)["workers"]["metadata"]["labels"] != find_pods(other)["workers"]["metadata"]["labels"]
    )


def test_releases_of_two_namespaces_share_no_object() -> None:
    """The namespace is part of the name of what belongs to the whole cluster."""
    values = {"scaling": {"restrictPatches": True}}
    one, other = render(values, namespace="one"), render(values, namespace="two")
    assert sum("namespace" not in each["metadata"] for each in one) == 2
    assert not _list_ids(one) & _list_ids(other)
    # Releases of two namespaces share no object of a third.
    sidecar = {"dashboards": True, "datasource": True, "namespace": "two"}
    grafana = {"grafana": {"enabled": False, "sidecar": sidecar}}
    one, other = render(grafana, namespace="one"), render(grafana, namespace="two")
    assert not _list_ids(one) & _list_ids(other)
    assert find(one, "ConfigMap", "oku-datasource.one")["data"].keys() == {"oku-datasource.one.yaml"}
    assert find(one, "ConfigMap", "oku-dashboard-run.one")
    assert find(other, "ConfigMap", "oku-datasource")


@pytest.mark.parametrize("release", ["oku", f"{LONG}1", "a.b.c", "9"])
def test_names_are_short_enough_and_keep_their_suffix(release: str) -> None:
    """A Service takes 63 characters, a StatefulSet 52; all begin with a letter."""
    objects = render(release=release)
    for each in objects:
        assert re.fullmatch(r"[a-z][a-z0-9-]{0,51}", each["metadata"]["name"]), each["metadata"]["name"]
    suffixes = {each["metadata"]["name"].rpartition("-")[2] for each in objects}
    assert suffixes >= {
        "coordinator",
        "ledger",
        "token",
        "workers",
        "servers",
        "valkey",
        "loki",
        "grafana",
        "test",
    }


def test_everything_of_a_release_has_its_labels_and_namespace() -> None:
    """`kubectl get -l` finds all of it."""
    extra = {"extraLabels": {"team": "load"}, "extraAnnotations": {"owner": "me"}}
    for each in render(extra, release="night", namespace="there"):
        labels = each["metadata"]["labels"]
        assert each["metadata"]["namespace"] == "there"
        assert labels["app.kubernetes.io/name"] == "oku"
        assert labels["app.kubernetes.io/instance"] == "night"
        assert labels["team"] == "load"
        assert each["metadata"]["annotations"]["owner"] == "me"
    # A full name takes the place of the release.
    assert find(render({"fullnameOverride": "load-test"}), "Deployment", "load-test-workers")


def test_selectors_select_the_pods_of_their_component_alone() -> None:
    """The selector of every Deployment, StatefulSet, Service, budget and policy matches one component."""
    objects = render()
    pods = {name: pod["metadata"]["labels"] for name, pod in find_pods(objects).items()}
    for each in objects:
        spec = each.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is None:
            continue
        labels = selector.get("matchLabels", selector)
        selected = [name for name, having in pods.items() if labels.items() <= having.items()]
        assert selected == [each["metadata"]["labels"]["app.kubernetes.io/component"]]


def test_names_of_digits_stay_texts() -> None:
    """A namespace, a Secret and its keys may be called `1234`, which YAML reads as a number."""
    secret = {"existingSecret": "1234", "key": "1234"}
    values: dict[str, Any] = {
        "pods": {"labels": {"a": "1234"}, "priorityClassName": "1234"},
        "workers": {"pod": {"serviceAccount": {"name": "1234"}}},
        "coordinator": {
            "token": secret,
            "persistence": {"existingClaim": "1234"},
            "kubeUsers": [{"kind": kind, "name": "1234"} for kind in ("User", "Group", "ServiceAccount")],
            "ingress": {"enabled": True, "className": "1234", "hosts": ["1234"]},
        },
        "valkey": {"persistence": {"storageClass": "1234"}, "password": {"coordinatorKey": "1234"}},
        "broker": {"messageKey": secret},
        "loki": {
            "enabled": False,
            "external": {"url": "http://loki", "auth": "basic", "existingSecret": "1234", "tenant": "1234"},
        },
        "grafana": {"admin": {"existingSecret": "1234", "userKey": "1234", "passwordKey": "1234"}},
        "networkPolicy": {"apiClients": [{"podSelector": {}}]},
    }
    generated = {"messageKey": {"key": "1234"}}, {"userKey": "1234"}
    more = values | {"broker": generated[0], "grafana": {"admin": generated[1]}}
    external = {"broker": {"external": secret | {"port": 6379}}, "valkey": {"enabled": False}}
    for each in (values, more, values | external):
        found = set(_find_numbers(render(each, namespace="1234"), 1234))
        assert not found, found


def _find_numbers(part: Any, number: int, path: str = "") -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key == number:
                yield path
            yield from _find_numbers(value, number, f"{path}.{key}")
    elif isinstance(part, list):
        for value in part:
            yield from _find_numbers(value, number, path)
    elif part == number:
        yield path
