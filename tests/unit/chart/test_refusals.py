from typing import Any

import pytest
from tests.unit.chart.rendering import VALUE_FILES, refuse, render

pytestmark = pytest.mark.heavy

NO_VALKEY = {"enabled": False}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"valkey": NO_VALKEY}, "no other broker is named: set broker.external.url or"),
        ({"broker": {"external": {"url": "redis://x"}}}, "set valkey.enabled to false, or remove"),
        (
            {"valkey": NO_VALKEY, "broker": {"external": {"url": "redis://x", "existingSecret": "s"}}},
            "both name the broker: keep one of them",
        ),
        (
            {"valkey": NO_VALKEY, "broker": {"external": {"url": "redis://:secret@x"}}},
            "put the URL into a Secret and name it in broker.external.existingSecret",
        ),
        (
            {"valkey": NO_VALKEY, "broker": {"external": {"existingSecret": "s"}}},
            "which the network policy has to name: set broker.external.port",
        ),
        (
            {"loki": {"enabled": False, "external": {"url": "https://me:secret@x"}}},
            "put both into a Secret that loki.external.existingSecret names",
        ),
        (
            {"coordinator": {"service": {"type": "LoadBalancer"}}},
            "coordinator.service.type is LoadBalancer, and the network policy lets nobody from outside in",
        ),
        (
            {"coordinator": {"serviceMonitor": {"enabled": True}}},
            "does not let your Prometheus in: name its pods in networkPolicy.apiClients",
        ),
        ({"loki": {"external": {"url": "http://x"}}}, "set loki.enabled to false, or remove loki.external"),
        (
            {"loki": {"enabled": False, "external": {"url": "http://x", "auth": "basic"}}},
            "loki.external.auth is basic: name the Secret with its keys in loki.external.existingSecret",
        ),
        ({"loki": {"enabled": False}}, "Grafana would have nothing to show: set loki.enabled or"),
        (
            {"grafana": {"sidecar": {"dashboards": True, "namespace": "monitoring"}}},
            "set grafana.enabled to false, or remove the namespace",
        ),
        (
            {
                "loki": {"enabled": False, "external": {"url": "http://x", "auth": "bearer",
                                                        "existingSecret": "s"}},
                "grafana": {"enabled": False, "sidecar": {"datasource": True}},
            },
            "grafana.sidecar.datasource cannot hand your Grafana the credentials",
        ),
        (
            {"loki": {"persistence": {"enabled": False, "existingClaim": "mine"}}},
            "set loki.persistence.enabled to true, or remove the claim",
        ),
        (
            {"servers": {"resources": {"requests": {"cpu": None}}}},
            "set servers.resources.requests.cpu, or servers.autoscaling.enabled to false",
        ),
        (
            {"scaling": {"maxWorkers": 1, "defaultWorkers": 1}},
            "tests.workers is more than scaling.maxWorkers",
        ),
        ({"scaling": {"defaultWorkers": 30}}, "scaling.defaultWorkers is more than scaling.maxWorkers"),
        ({"scaling": {"minServers": 30}}, "scaling.minServers is more than scaling.maxServers"),
        (
            {"scaling": {"enabled": False, "restrictPatches": True}},
            "set scaling.enabled to true, or scaling.restrictPatches to false",
        ),
        (
            {"workers": {"pod": {"extraEnv": [{"name": "OKU_GRACE", "value": "1s"}]}}},
            "workers.pod.extraEnv: OKU_GRACE is set by the chart",
        ),
        (
            {"workers": {"userCodeMemory": "2GB"}},
            "workers.userCodeMemory: 2GB is more than workers.resources.limits.memory, 1Gi",
        ),
        (
            {"workers": {"resources": {"limits": {"memory": "512Mi"}}}},
            "workers.userCodeMemory: 640MB is more than workers.resources.limits.memory, 512Mi",
        ),
        (
            {"workers": {"requireConfinement": True, "confineUserCode": False}},
            "set workers.confineUserCode to true, or workers.requireConfinement to false",
        ),
        (
            {"workers": {"resources": {"limits": {"memory": "1GB"}}}},
            "workers.resources.limits.memory: 1GB is not a quantity such as 512Mi or 1Gi",
        ),
        (
            {"scaling": {"enabled": False}, "workers": {"replicas": 0}},
            "a run would wait for ever: set scaling.enabled to true, or workers.replicas to 1 or more",
        ),
        (
            {"scaling": {"enabled": False}, "servers": {"replicas": 0, "autoscaling": {"enabled": False}}},
            "there would be no delay server: set servers.replicas to 1 or more, or servers.enabled to false",
        ),
        ({"scaling": {"idle": "5s"}}, "scaling.idle: 5s is not between 10s and 24h"),
        ({"scaling": {"idle": "25h"}}, "scaling.idle: 25h is not between 10s and 24h"),
        ({"scaling": {"idle": "soon"}}, "scaling.idle: soon is not a duration such as 10s, 500ms or 2m"),
        (
            {"coordinator": {"workerTimeout": "900ms"}},
            "coordinator.workerTimeout: 900ms is not between 1s and 2h",
        ),
        (
            {"coordinator": {"workerTimeout": "121m"}},
            "coordinator.workerTimeout: 121m is not between 1s and 2h",
        ),
        ({"coordinator": {"lokiOutbox": "500KB"}}, "coordinator.lokiOutbox: 500KB is less than 1MB"),
        (
            {"coordinator": {"lokiOutbox": "much"}},
            "coordinator.lokiOutbox: much is not a size such as 256MB or 1GiB",
        ),
        ({"servers": {"delay": "5x"}}, "servers.delay: 5x is not a delay such as 20ms, 0..3s,"),
        ({"servers": {"delay": "2h"}}, "servers.delay: 2h is not between 0s and 1h"),
        ({"servers": {"delay": "3s..1s"}}, "servers.delay: 3s..1s begins with the longer of its bounds"),
        ({"servers": {"delay": "lognormal:1ms,6"}}, "servers.delay: lognormal:1ms,6 has a sigma of more"),
        *(
            ({"workers": {"portRange": ports}}, f"workers.portRange: {ports} is not the first and the last")
            for ports in ("1023 65535", "65535 1024", "1024 65536")
        ),
        (
            {"pods": {"extraVolumes": [{"name": "tmp", "emptyDir": {}}]}},
            "has a volume tmp of the chart's own: give the one in extraVolumes another name",
        ),
        (
            {"valkey": {"pod": {"extraVolumes": [{"name": "mine", "emptyDir": {}}],
                                "extraVolumeMounts": [{"name": "mine", "mountPath": "/etc/valkey/"}]}}},
            "valkey has something at /etc/valkey/ that the chart mounts there",
        ),
        (
            {"pods": {"extraVolumeMounts": [{"name": "certs", "mountPath": "/certs"}]},
             "workers": {"pod": {"extraVolumes": [{"name": "certs", "secret": {"secretName": "ca"}}]}}},
            "coordinator mounts a volume certs that it does not have",
        ),
    ],
)  # fmt: skip
def test_invalid_values_are_refused_with_what_to_do(values: dict[str, Any], sentence: str) -> None:
    """One sentence names the values and says what to do."""
    assert sentence in refuse(values)


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"worker": {"replicas": 3}}, "worker"),
        ({"workers": {"replica": 3}}, "replica"),
        ({"workers": {"replicas": "3"}}, "replicas"),
        ({"image": {"digest": "sha256:abc"}}, "/image/digest"),
        # There was an image for each of these once.
        ({"coordinator": {"image": {"tag": "2"}}}, "at '/coordinator': additional properties 'image'"),
        ({"workers": {"image": {"tag": "2"}}}, "at '/workers': additional properties 'image'"),
        ({"servers": {"image": {"tag": "2"}}}, "at '/servers': additional properties 'image'"),
        ({"workers": {"pod": {"nodeselector": {}}}}, "nodeselector"),
        ({"pods": {"extraVolumes": [{"secret": {"secretName": "ca"}}]}}, "extraVolumes"),
        ({"pods": {"extraVolumeMounts": [{"name": "ca", "mountPath": "certs"}]}}, "mountPath"),
        ({"pods": {"extraVolumeMounts": [{"name": "ca", "mountPath": "/c", "readonly": True}]}}, "readonly"),
        ({"scaling": {"idle": 60}}, "idle"),
        ({"workers": {"portRange": "1024"}}, "portRange"),
        ({"workers": {"portRange": "1 65535"}}, "portRange"),
        ({"workers": {"maxUnavailable": "abc"}}, "maxUnavailable"),
        ({"scaling": {"maxWorkers": 0}}, "maxWorkers"),
        ({"scaling": {"maxWorkers": 10_001}}, "maxWorkers"),
        ({"scaling": {"maxWorkers": 10_000, "defaultWorkers": 10_001}}, "defaultWorkers"),
        ({"scaling": {"maxServers": 10_001}}, "maxServers"),
        ({"scaling": {"minServers": 10_001}}, "minServers"),
        ({"servers": {"seed": 2**53}}, "seed"),
        ({"networkPolicy": {"kubernetesApiPorts": []}}, "kubernetesApiPorts"),
        ({"networkPolicy": {"kubernetesApiPorts": [0]}}, "kubernetesApiPorts"),
        ({"networkPolicy": {"dns": {"ports": []}}}, "ports"),
        ({"networkPolicy": {"dns": {"ports": [65_536]}}}, "ports"),
        ({"loki": {"external": {"url": "loki:3100"}}}, "url"),
        ({"loki": {"external": {"auth": "digest"}}}, "auth"),
        ({"fullnameOverride": "Oku"}, "fullnameOverride"),
    ],
)
def test_a_value_that_is_not_in_the_schema_is_refused_by_its_name(values: dict[str, Any], path: str) -> None:
    """A misspelt key changes nothing otherwise, and nobody sees it."""
    said = refuse(values)
    assert "values don't meet the specifications of the schema" in said
    assert path in said


def test_a_chart_that_contains_this_one_may_have_global_values() -> None:
    """Helm hands them to all charts."""
    assert render({"global": {"team": "load"}})
    for file in VALUE_FILES:
        # Value files are accepted. The chart accepts all files of k8s/values.
        assert render(files=(file,))
    cases: list[dict[str, Any]] = [
        {
            "servers": {"delay": "1.5ms..3ms"},
            "coordinator": {"workerTimeout": "2.5s"},
            "scaling": {"idle": "1.5h"},
        },
        {"servers": {"delay": "5MS"}, "coordinator": {"workerTimeout": "1s"}, "scaling": {"idle": "24h"}},
        {"scaling": {"maxWorkers": 10_000, "maxServers": 10_000, "minServers": 10_000}},
        {"workers": {"portRange": "1024 1024"}, "servers": {"seed": 2**53 - 1}},
        {"workers": {"portRange": ""}},
        *({"workers": {"maxUnavailable": most}} for most in (0, 1, "10%")),
        {
            "coordinator": {"service": {"type": "NodePort"}, "serviceMonitor": {"enabled": True}},
            "networkPolicy": {"enabled": False},
        },
        {
            "valkey": NO_VALKEY,
            "broker": {"external": {"existingSecret": "s"}},
            "networkPolicy": {"enabled": False},
        },
        {"scaling": {"enabled": False}, "servers": {"replicas": 0}},
    ]
    for values in cases:
        # Valid values are accepted.
        assert render(values)


@pytest.mark.parametrize("resources", [{}, {"limits": None}, {"limits": {"memory": None}}], ids=str)
def test_user_code_may_have_any_memory_where_its_container_has_no_limit(resources: dict[str, Any]) -> None:
    """There is nothing to hold it against."""
    assert render({"workers": {"resources": resources, "userCodeMemory": "100GB"}} if resources else {})
