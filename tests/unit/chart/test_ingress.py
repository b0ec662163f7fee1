"""Ways in from outside the cluster: to the API, and to Grafana."""

from pathlib import Path
from typing import Any

import pytest
from tests.kit.kubernetes.platform_values import HTTP_ROUTE, INGRESS, PEER
from tests.unit.chart.rendering import evaluate, find, find_kind, find_pods, render

WAYS = {"ingress": INGRESS, "httpRoute": HTTP_ROUTE}
PARTS = {"coordinator": ("apiClients", 9000, 8700), "grafana": ("grafanaClients", 3000, 3000)}
"""The value that admits callers, the port of the Service and that of the pod."""


def _values(part: str, **ways: Any) -> dict[str, Any]:
    service = {"service": {"port": 9000}} if part == "coordinator" else {}
    return {part: ways | service, "networkPolicy": {PARTS[part][0]: [PEER]}}


def test_there_is_none_by_default() -> None:
    """The API speaks plain HTTP, and stays within the cluster."""
    assert not {"Ingress", "HTTPRoute", "LoadBalancer"} & {each["kind"] for each in render()}


@pytest.mark.parametrize("part", PARTS)
def test_an_ingress_leads_to_the_service(part: str) -> None:
    """It has the class, the annotations, the names and the certificates that the values say."""
    objects = render(_values(part, ingress=INGRESS))
    ingress = find(objects, "Ingress", f"oku-{part}")
    assert ingress["metadata"]["annotations"] == INGRESS["annotations"]
    backend = {"service": {"name": f"oku-{part}", "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    assert ingress["spec"] == {
        "ingressClassName": INGRESS["className"],
        "tls": INGRESS["tls"],
        "rules": [{"host": "oku.example.com", "http": {"paths": [path]}}],
    }
    ports = find(objects, "Service", f"oku-{part}")["spec"]["ports"]
    assert [each["name"] for each in ports] == ["http"]


@pytest.mark.parametrize("part", PARTS)
def test_a_route_leads_to_the_service(part: str) -> None:
    """It has the gateways, the names, the filters and the timeouts that the values say."""
    objects = render(_values(part, httpRoute=HTTP_ROUTE))
    route = find(objects, "HTTPRoute", f"oku-{part}")
    port = PARTS[part][1]
    assert route["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert route["metadata"]["annotations"] == HTTP_ROUTE["annotations"]
    rule = {
        "backendRefs": [{"name": f"oku-{part}", "port": port}],
        "filters": HTTP_ROUTE["filters"],
        "timeouts": HTTP_ROUTE["timeouts"],
    }
    assert route["spec"] == {
        "parentRefs": HTTP_ROUTE["parentRefs"], "hostnames": HTTP_ROUTE["hostnames"], "rules": [rule]
    }  # fmt: skip
    assert port in [each["port"] for each in find(objects, "Service", f"oku-{part}")["spec"]["ports"]]


@pytest.mark.parametrize("part", PARTS)
def test_the_least_that_they_need_is_all_that_they_say(part: str) -> None:
    """Nothing is said that the API server would drop."""
    ways = {
        "ingress": {"enabled": True, "hosts": ["oku.example.com"]},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
    }
    objects = render(_values(part, **ways))
    ingress, route = (find(objects, kind, f"oku-{part}") for kind in ("Ingress", "HTTPRoute"))
    assert ingress["spec"].keys() == {"rules"}
    assert route["spec"].keys() == {"parentRefs", "rules"}
    assert route["spec"]["rules"][0].keys() == {"backendRefs"}
    assert not any("annotations" in each["metadata"] for each in (ingress, route))


@pytest.mark.parametrize("part", PARTS)
def test_the_controller_reaches_the_port_of_the_pod(part: str) -> None:
    """The policy lets in whom the values name, at the port to which the Service leads."""
    objects = render(_values(part, **WAYS))
    rules = find(objects, "NetworkPolicy", f"oku-{part}")["spec"]["ingress"]
    [rule] = [each for each in rules if PEER in each["from"]]
    assert rule["ports"] == [{"port": PARTS[part][2], "protocol": "TCP"}]
    [container] = find_pods(objects)[part]["spec"]["containers"]
    assert {each["name"]: each["containerPort"] for each in container["ports"]}["http"] == PARTS[part][2]


def test_the_notes_say_where_the_api_and_grafana_are(tmp_path: Path) -> None:
    """At the names of both ways in, each once; without any they show forwarded ports alone."""
    template = 'notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}'
    for component in ("coordinator", "grafana"):
        said = evaluate(template, _values(component, **WAYS), tmp_path / component)["notes"]
        assert said.count("It is also at https://oku.example.com, if your") == 1
    assert "https://" not in evaluate(template, {}, tmp_path / "none")["notes"]


def test_without_grafana_there_is_no_way_to_it() -> None:
    """Nothing would answer there."""
    values = {"grafana": WAYS | {"enabled": False}}
    kinds = {each["kind"] for each in render(values | {"networkPolicy": {"grafanaClients": [PEER]}})}
    assert not {"Ingress", "HTTPRoute"} & kinds


def test_a_budget_keeps_the_coordinator_where_it_is() -> None:
    """There is none by default: with 0 a drain waits for its operator."""
    assert [each["metadata"]["name"] for each in find_kind(render(), "PodDisruptionBudget")] == [
        "oku-workers"
    ]
    for most in (0, 1, "50%"):
        objects = render({"coordinator": {"maxUnavailable": most}})
        spec = find(objects, "PodDisruptionBudget", "oku-coordinator")["spec"]
        assert spec["maxUnavailable"] == most
        # One that is not ready has no run to keep.
        assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        labels = find_pods(objects)["coordinator"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()


def test_the_autoscaler_looks_at_the_container_of_the_delay_server() -> None:
    """Beside one that requests no processor time, it would not know how busy the pod is."""
    [metric] = find_kind(render(), "HorizontalPodAutoscaler")[0]["spec"]["metrics"]
    assert (
        metric["containerResource"]["container"]
        == find_pods(render())["servers"]["spec"]["containers"][0]["name"]
    )
