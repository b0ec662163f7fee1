"""A key without a value (`keepRuns:`) is null, which Helm drops: it means empty, or is refused."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from docs.tools.chart_values import Value, read_values
from tests.unit.chart.rendering import CHART, Object, find_pods, refuse, render

EMPTY: tuple[Any, ...] = ("", [], {})


def _walk(values: Sequence[Value]) -> Iterator[Value]:
    for value in values:
        yield value
        yield from _walk(value.children)


VALUES = list(_walk(read_values((CHART / "values.yaml").read_text())))


def _nest(paths: Sequence[tuple[str, ...]], *, under: Object | None = None) -> dict[str, Any]:
    """Null at each path that has no value yet."""
    nested: dict[str, Any] = under or {}
    for path in paths:
        place = nested
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place.setdefault(path[-1], None)
    return nested


def _switch_on() -> dict[str, Any]:
    """All that is off by default, with what it needs."""
    peers: list[Object] = [{"podSelector": {}}]
    ways: Object = {
        "ingress": {"enabled": True, "hosts": ["oku.example.com"]},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
    }
    return {
        "networkPolicy": {"apiClients": peers, "grafanaClients": peers},
        "allowUserCode": True,
        "coordinator": {**ways, "serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
        "grafana": {**ways, "sidecar": {"dashboards": True, "datasource": True}},
    }


def _strip_generated(objects: list[Object]) -> list[Object]:
    for pod in find_pods(objects).values():
        pod["metadata"].get("annotations", {}).pop("checksum/secrets", None)
    return [each for each in objects if each["kind"] != "Secret"]


def test_null_is_as_empty_as_the_default() -> None:
    """`keepRuns:` once deleted all runs, and `maxUnavailable:` made a budget without a number."""
    paths = [value.path for value in VALUES if value.default in EMPTY]
    assert ("coordinator", "keepRuns") in paths
    values = _nest(paths, under=_switch_on())
    assert _strip_generated(render(values)) == _strip_generated(render(_switch_on()))


def test_null_is_refused_where_the_default_is_not_empty() -> None:
    """By its place, all at once; a template would say `nil pointer`."""
    leaves = [
        value.path
        for value in VALUES
        if value.path[0] != "pods" and not value.children and value.default not in EMPTY
    ]
    missing: dict[str, set[str]] = {}
    for line in refuse(_nest(leaves)).splitlines():
        place, _, keys = line.partition(": missing propert")
        if keys:
            missing[place.partition("'")[2].rstrip("'")] = set(re.findall(r"'(\w+)'", keys))
    expected: dict[str, set[str]] = {}
    for path in leaves:
        expected.setdefault("".join(f"/{key}" for key in path[:-1]), set()).add(path[-1])
    assert missing == expected


def test_null_of_a_component_removes_what_all_pods_have() -> None:
    """Whatever type it has."""
    everything = {
        "labels": {"team": "load"}, "annotations": {"team": "load"}, "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "load"}], "affinity": {"nodeAffinity": {}}, "priorityClassName": "high",
        "runtimeClassName": "kata", "dnsPolicy": "Default", "dnsConfig": {"searches": ["shop.svc"]},
        "hostAliases": [{"ip": "10.0.0.7", "hostnames": ["shop"]}], "extraEnv": [{"name": "A", "value": "1"}],
        "envFrom": [{"secretRef": {"name": "a"}}], "extraVolumes": [{"name": "a", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "a", "mountPath": "/a"}],
        "extraInitContainers": [{"name": "a", "image": "a"}],
        "extraContainers": [{"name": "b", "image": "b"}],
    }  # fmt: skip
    values = {"pods": everything, "workers": {"pod": dict.fromkeys(everything)}}
    pods = find_pods(_strip_generated(render(values)))
    assert pods["workers"] == find_pods(_strip_generated(render()))["workers"]
    assert pods["servers"]["spec"]["priorityClassName"] == "high"
    label = {"pods": everything, "workers": {"pod": {"labels": {"team": None}}}}
    assert "team" not in find_pods(render(label))["workers"]["metadata"]["labels"]
