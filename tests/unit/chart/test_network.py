from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.chart.rendering import Object, find, find_kind, find_pods, render


def _list_flows(objects: list[Object]) -> set[tuple[str, str, int]]:
    """Which components may speak to which, and at what port: where one lets out and the other lets in."""
    pods = {name: pod["metadata"]["labels"] for name, pod in find_pods(objects).items()}
    policies = {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]
        for each in find_kind(objects, "NetworkPolicy")
    }
    assert policies.keys() == pods.keys()
    assert all(spec["policyTypes"] == ["Ingress", "Egress"] for spec in policies.values())
    outward = {
        (name, other, port)
        for name, spec in policies.items()
        for other, port in _list_peers(spec.get("egress", []), "to", pods)
    }
    inward = {
        (other, name, port)
        for name, spec in policies.items()
        for other, port in _list_peers(spec.get("ingress", []), "from", pods)
    }
    assert outward == inward
    return outward


def _list_peers(
    rules: list[dict[str, Any]], key: str, pods: dict[str, dict[str, str]]
) -> Iterator[tuple[str, int]]:
    for rule in rules:
        for peer in rule.get(key, []):
            labels = peer["podSelector"]["matchLabels"]
            for name, having in pods.items():
                if labels.items() <= having.items():
                    yield from ((name, port["port"]) for port in rule["ports"])


def test_only_the_flows_that_oku_has_are_let_through() -> None:
    """The policies allow these flows, by source, destination and port, and no others within the release."""
    assert _list_flows(render()) == {
        ("coordinator", "valkey", 6379),
        ("coordinator", "loki", 3100),
        ("coordinator", "servers", 8080),
        ("workers", "valkey", 6379),
        ("workers", "servers", 8080),
        ("workers", "coordinator", 8700),
        ("workers", "coordinator", 8701),
        ("grafana", "loki", 3100),
        ("test", "coordinator", 8700),
    }


def test_what_leaves_the_release_is_named_by_port() -> None:
    """DNS is open to all pods that resolve names, the Kubernetes API to those that have a token for it."""
    outside = {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: {
            port["port"]
            for rule in each["spec"].get("egress", [])
            if "to" not in rule
            for port in rule["ports"]
        }
        for each in find_kind(render(), "NetworkPolicy")
    }
    assert outside == {
        "coordinator": {53, 443, 6443},
        "test": {53, 443, 6443},
        "workers": {53},
        "grafana": {53},
        "servers": set(),
        "valkey": set(),
        "loki": set(),
    }


def test_workers_reach_the_clock_and_not_the_api() -> None:
    """They are at the same port; the API is TCP, the clock UDP."""
    policy = find(render(), "NetworkPolicy", "oku-coordinator")
    workers = {"app.kubernetes.io/component": "workers"}
    [rule] = [
        each
        for each in policy["spec"]["ingress"]
        if workers.items() <= each["from"][0]["podSelector"]["matchLabels"].items()
    ]
    assert rule["ports"] == [{"port": 8700, "protocol": "UDP"}, {"port": 8701, "protocol": "TCP"}]
    # Only workers reach the port of files. Neither who may call the API, nor anybody else who is named.
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    policy = find(render({"networkPolicy": {"apiClients": [peer]}}), "NetworkPolicy", "oku-coordinator")
    rules = [rule for rule in policy["spec"]["ingress"] if {"port": 8701, "protocol": "TCP"} in rule["ports"]]
    assert [
        peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for rule in rules
        for peer in rule["from"]
    ] == ["workers"]
    # The api answers marked pods of its namespace alone.
    rule, _ = find(render(release="night"), "NetworkPolicy", "night-coordinator")["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"oku/client": "night"}}}]


def test_workers_reach_what_was_named_as_a_target() -> None:
    """A target may be named by anything that a rule of egress can say."""
    target = {"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}]}
    policy = find(render({"networkPolicy": {"targets": [target, {}]}}), "NetworkPolicy", "oku-workers")
    assert policy["spec"]["egress"][-2:] == [target, {}]
    # Others are let in when they are named. A named peer may reach the API, Loki or Grafana.
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    objects = render(
        {"networkPolicy": {"apiClients": [peer], "lokiClients": [peer], "grafanaClients": [peer]}}
    )
    for name in ("oku-coordinator", "oku-loki", "oku-grafana"):
        rule = find(objects, "NetworkPolicy", name)["spec"]["ingress"][0]
        assert peer in rule["from"]


@pytest.mark.parametrize(
    ("url", "told", "port"),
    [
        ("redis://valkey.mq.svc/3", 0, 6379),
        ("amqp://rabbit.mq.svc/oku", 0, 5672),
        ("amqps://rabbit.mq.svc/oku", 0, 5671),
        ("rediss://valkey.mq.svc:7000/3", 0, 7000),
        ("redis://valkey.mq.svc/3", 16379, 16379),
    ],
)
def test_a_broker_is_reached_by_the_usual_port_of_its_kind(url: str, told: int, port: int) -> None:
    """The usual port is taken unless the URL has another, or another is set."""
    values = {"valkey": {"enabled": False}, "broker": {"external": {"url": url, "port": told}}}
    for name in ("oku-coordinator", "oku-workers"):
        egress = find(render(values), "NetworkPolicy", name)["spec"]["egress"]
        assert {"ports": [{"port": port, "protocol": "TCP"}]} in egress


def test_what_is_outside_is_reached_by_its_port() -> None:
    """The port is the one that was set, or that of the URL; the Kubernetes API is in its networks."""
    broker = {"existingSecret": "mine", "port": 5671}
    for url, port in (("https://logs.example.com", 443), ("http://loki.there.svc:8080/x", 8080)):
        values = {
            "valkey": {"enabled": False}, "broker": {"external": broker},
            "loki": {"enabled": False, "external": {"url": url}},
            "networkPolicy": {"kubernetesApi": ["10.0.0.1/32"], "kubernetesApiPorts": [6443]},
        }  # fmt: skip
        objects = render(values)
        egress = find(objects, "NetworkPolicy", "oku-coordinator")["spec"]["egress"]
        assert {"ports": [{"port": 5671, "protocol": "TCP"}]} in egress
        assert {"ports": [{"port": port, "protocol": "TCP"}]} in egress
        assert egress[-1] == {
            "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
            "ports": [{"port": 6443, "protocol": "TCP"}],
        }
    # Dns is reached at the configured pods.
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}}
    objects = render({"networkPolicy": {"dns": {"ports": [5353], "to": [peer]}}})
    for name in ("oku-coordinator", "oku-workers", "oku-grafana", "oku-test"):
        egress = find(objects, "NetworkPolicy", name)["spec"]["egress"]
        ports = [{"port": 5353, "protocol": protocol} for protocol in ("UDP", "TCP")]
        assert egress[0] == {"to": [peer], "ports": ports}
        assert not any(port["port"] == 53 for rule in egress for port in rule["ports"])
    # A loki behind a service is reached by the port of its pods.
    external = {"url": "http://loki-gateway.monitoring.svc", "port": 8080}
    objects = render({"loki": {"enabled": False, "external": external}})
    egress = find(objects, "NetworkPolicy", "oku-coordinator")["spec"]["egress"]
    assert {"ports": [{"port": 8080, "protocol": "TCP"}]} in egress


def _find_unstored(value: Any, place: str) -> list[str]:
    """Where there is something empty that the API server drops: any list, and the labels of a selector."""
    if isinstance(value, dict):
        found = [each for key, inner in value.items() for each in _find_unstored(inner, f"{place}.{key}")]
        return [*found, *(f"{place}.{key}" for key in value if key == "matchLabels" and not value[key])]
    if isinstance(value, list):
        return [each for inner in value for each in _find_unstored(inner, place)] if value else [place]
    return []


_SELECTORS: list[dict[str, Any]] = [
    {"podSelector": {}},
    {"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}},
    {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]}},
    {"ipBlock": {"cidr": "10.0.0.0/8", "except": []}},
]
_STORED: list[dict[str, Any]] = [
    {"podSelector": {}},
    {"namespaceSelector": {}},
    {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
    {"ipBlock": {"cidr": "10.0.0.0/8"}},
]


def test_policies_are_rendered_as_the_api_server_stores_them() -> None:
    """`kubectl diff` would show an empty list for ever; what a rule or a selector selects stays the same."""
    theirs = dict.fromkeys(("apiClients", "lokiClients", "grafanaClients"), _SELECTORS)
    rules: list[dict[str, Any]] = [
        {}, {"to": [], "ports": []}, {"to": _SELECTORS, "ports": [{"port": 80, "protocol": "TCP"}]}
    ]  # fmt: skip
    everything = theirs | {"targets": rules, "dns": {"to": _SELECTORS}}
    external = {"existingSecret": "mine", "port": 5671}
    combinations: list[dict[str, Any]] = [
        {}, {"networkPolicy": everything}, {"scaling": {"enabled": False}}, {"servers": {"enabled": False}},
        {"valkey": {"enabled": False}, "broker": {"external": external}, "networkPolicy": everything},
        {"loki": {"enabled": False}, "grafana": {"enabled": False}, "networkPolicy": everything},
    ]  # fmt: skip
    for values in combinations:
        policies = find_kind(render(values), "NetworkPolicy")
        assert len(policies) > 3
        unstored = [
            each for policy in policies for each in _find_unstored(policy["spec"], policy["metadata"]["name"])
        ]
        assert not unstored, values
    policies = find_kind(render({"networkPolicy": everything}), "NetworkPolicy")
    ports = [{"port": 80, "protocol": "TCP"}]
    workers = find(policies, "NetworkPolicy", "oku-workers")["spec"]["egress"]
    assert workers[0]["to"] == _STORED
    assert workers[-3:] == [{}, {}, {"to": _STORED, "ports": ports}]
    for name in ("oku-coordinator", "oku-loki", "oku-grafana"):
        assert find(policies, "NetworkPolicy", name)["spec"]["ingress"][0]["from"][-4:] == _STORED


def test_a_direction_without_rules_is_denied() -> None:
    """A policy that names a direction and lists no rule for it lets nothing through."""
    denied = {
        each["metadata"]["name"]: [name for name in ("ingress", "egress") if name not in each["spec"]]
        for each in find_kind(render(), "NetworkPolicy")
        if each["spec"]["policyTypes"] == ["Ingress", "Egress"]
    }
    assert denied == {
        "oku-coordinator": [], "oku-workers": ["ingress"], "oku-servers": ["egress"],
        "oku-valkey": ["egress"], "oku-loki": ["egress"], "oku-grafana": ["ingress"], "oku-test": ["ingress"],
    }  # fmt: skip
    # Without policies there are none.
    assert not find_kind(render({"networkPolicy": {"enabled": False}}), "NetworkPolicy")
