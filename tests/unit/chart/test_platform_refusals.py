"""Wrong values for pods, accounts, storage and ways in are refused, each in one line."""

from typing import Any

import pytest
from tests.unit.chart.rendering import refuse

pytestmark = pytest.mark.heavy

_GATE = [{"name": "public"}]
_A = {"name": "a", "image": "x"}


def _set_pod(component: str, **pod: Any) -> dict[str, Any]:
    return {component: {"pod": pod}}


def _limit_storage(component: str, text: str, **more: Any) -> dict[str, Any]:
    return {component: {"resources": {"limits": {"ephemeral-storage": text}}, **more}}


SENTENCES: list[tuple[dict[str, Any], str]] = [
    (
        {"pods": {"extraInitContainers": [{"name": "worker", "image": "x"}]}},
        "workers has two containers worker: give the one in extraContainers or extraInitContainers another",
    ),
    (
        _set_pod("loki", extraContainers=[_A, _A]),
        "loki has two containers a: give the one in extraContainers",
    ),
    (
        _set_pod("loki", extraContainers=[_A], extraInitContainers=[_A]),
        "loki has two containers a: give the one in extraContainers",
    ),
    (
        {"pods": {"dnsPolicy": "None"}},
        "coordinator asks nobody for names: with dnsPolicy None, set dnsConfig.nameservers",
    ),
    (
        {"pods": {"serviceAccount": {"name": "all"}}},
        "coordinator and workers would both make a service account all: set serviceAccount.create to false",
    ),
    (
        _set_pod("valkey", serviceAccount={"name": "oku-workers"}),
        "workers and valkey would both make a service account oku-workers",
    ),
    (
        _set_pod("coordinator", serviceAccount={"create": False}),
        "would go to every pod of the namespace: set serviceAccount.create or serviceAccount.name",
    ),
    (
        {"workers": {"maxCacheBytes": "4GB"}},
        "workers.maxCacheBytes: 4GB is more than the size limit of run-files, 3Gi, at which the kubelet",
    ),
    (
        _limit_storage("workers", "1Gi"),
        "workers.maxCacheBytes: 2GB is more than workers.resources.limits.ephemeral-storage, 1Gi",
    ),
    (
        _limit_storage("loki", "1Gi", persistence={"enabled": False}),
        "loki.persistence.size: without a volume, 10Gi is more than loki.resources.limits.ephemeral-storage",
    ),
    *(
        (
            _limit_storage(part, "1Gb"),
            f"{part}.resources.limits.ephemeral-storage: 1Gb is not a quantity such",
        )
        for part in ("coordinator", "workers", "servers", "valkey", "loki", "grafana", "tests")
    ),
    (
        _set_pod("servers", sizeLimits={"counts": "much"}),
        "servers.pod.sizeLimits.counts: much is not a quantity such as 512Mi or 1Gi",
    ),
    (
        {"coordinator": {"persistence": {"size": "5 GB"}}},
        "coordinator.persistence.size: 5 GB is not a quantity such as 512Mi or 1Gi",
    ),
    *(
        case
        for part, clients in (("coordinator", "apiClients"), ("grafana", "grafanaClients"))
        for case in (
            ({part: {"ingress": {"enabled": True}}}, f"it answers at no name: set {part}.ingress.hosts"),
            ({part: {"httpRoute": {"enabled": True}}}, f"serves it: set {part}.httpRoute.parentRefs"),
            (
                {part: {"ingress": {"enabled": True, "hosts": ["oku.example.com"]}}},
                f"{part}.ingress.enabled, and the network policy does not let its controller in",
            ),
            (
                {part: {"httpRoute": {"enabled": True, "parentRefs": _GATE}}},
                f"name the pods of that in networkPolicy.{clients}",
            ),
        )
    ),
]
NAMES: list[tuple[dict[str, Any], str]] = [
    ({"pods": {"podSecurityContext": {"runAsUsr": 1}}}, "'runAsUsr' not allowed"),
    ({"pods": {"podSecurityContext": {"runAsUser": "1000"}}}, "/pods/podSecurityContext/runAsUser"),
    (_set_pod("workers", securityContext={"fsGroup": 1}), "'fsGroup' not allowed"),
    (_set_pod("workers", securityContext={"capabilities": ["ALL"]}), "capabilities"),
    ({"pods": {"serviceAccount": {"create": "yes"}}}, "/pods/serviceAccount/create"),
    ({"pods": {"serviceAccount": {"labels": {}}}}, "'labels' not allowed"),
    # There was this one once.
    ({"coordinator": {"serviceAccountAnnotations": {}}}, "'serviceAccountAnnotations' not allowed"),
    ({"pods": {"dnsPolicy": "default"}}, "dnsPolicy"),
    ({"pods": {"dnsConfig": {"nameserver": "10.0.0.1"}}}, "'nameserver' not allowed"),
    ({"pods": {"hostAliases": [{"ip": "10.0.0.1"}]}}, "missing property 'hostnames'"),
    ({"pods": {"envFrom": [{"secretRef": {}}]}}, "missing property 'name'"),
    ({"pods": {"envFrom": [{"secret": {"name": "a"}}]}}, "'secret' not allowed"),
    ({"pods": {"extraContainers": [{"name": "a"}]}}, "missing property 'image'"),
    ({"pods": {"extraInitContainers": [{"image": "a"}]}}, "missing property 'name'"),
    ({"pods": {"extraContainers": {"name": "a"}}}, "/pods/extraContainers"),
    ({"pods": {"sizeLimits": {"temp": "1Gi"}}}, "'temp' not allowed"),
    ({"workers": {"resources": {"requests": {"memroy": "1Gi"}}}}, "'memroy' not allowed"),
    ({"tests": {"resources": {"request": {}}}}, "'request' not allowed"),
    ({"extraObjects": [{"kind": "ConfigMap"}]}, "missing properties 'apiVersion', 'metadata'"),
    ({"extraObjects": {"kind": "ConfigMap"}}, "/extraObjects"),
    ({"coordinator": {"maxUnavailable": "many"}}, "/coordinator/maxUnavailable"),
    ({"coordinator": {"maxUnavailable": "101%"}}, "/coordinator/maxUnavailable"),
    ({"workers": {"maxUnavailable": "101%"}}, "/workers/maxUnavailable"),
    ({"coordinator": {"token": {"existingSecret": "a/b"}}}, "/coordinator/token/existingSecret"),
    ({"grafana": {"admin": {"passwordKey": "a'b"}}}, "/grafana/admin/passwordKey"),
    ({"coordinator": {"ingress": {"host": "a"}}}, "'host' not allowed"),
    ({"coordinator": {"ingress": {"tls": [{"secret": "a"}]}}}, "'secret' not allowed"),
    ({"coordinator": {"httpRoute": {"parentRefs": [{"namespace": "a"}]}}}, "missing property 'name'"),
    ({"grafana": {"httpRoute": {"timeouts": {"request": "10"}}}}, "/timeouts/request"),
    ({"grafana": {"ingress": {"annotations": {"a": 1}}}}, "/grafana/ingress/annotations"),
]


def test_values_that_do_not_fit_each_other_are_refused_with_what_to_do() -> None:
    """One sentence names the values and says what to do."""
    faults = [(values, sentence) for values, sentence in SENTENCES if sentence not in refuse(values)]
    assert not faults


def test_unknown_keys_and_wrong_types_are_refused_by_their_place() -> None:
    """The schema says where; one line each."""
    faults: list[str] = []
    for values, words in NAMES:
        said = [line for line in refuse(values).splitlines() if line.startswith("- at ")]
        faults += [] if len(said) == 1 and words in said[0] else [f"{values}: {said}"]
    assert not faults
