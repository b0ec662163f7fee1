from typing import Any

import pytest
from tests.unit.chart.rendering import VALUE_FILES, refuse, render

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
            {"scaling": {"enabled": False}, "workers": {"replicas": 0}},
            "a run would wait for ever: set scaling.enabled to true, or workers.replicas to 1 or more",
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
def test_what_cannot_be_is_refused_with_what_to_do(values: dict[str, Any], sentence: str) -> None:
    """In one sentence that names the values."""
    assert sentence in refuse(values)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"worker": {"replicas": 3}}, "worker"),
        ({"workers": {"replica": 3}}, "replica"),
        ({"workers": {"replicas": "3"}}, "replicas"),
        ({"workers": {"image": {"digest": "sha256:abc"}}}, "digest"),
        ({"workers": {"pod": {"nodeselector": {}}}}, "nodeselector"),
        ({"pods": {"extraVolumes": [{"secret": {"secretName": "ca"}}]}}, "extraVolumes"),
        ({"pods": {"extraVolumeMounts": [{"name": "ca", "mountPath": "certs"}]}}, "mountPath"),
        ({"pods": {"extraVolumeMounts": [{"name": "ca", "mountPath": "/c", "readonly": True}]}}, "readonly"),
        ({"scaling": {"idle": "60"}}, "idle"),
        ({"scaling": {"idle": "5s"}}, "idle"),
        ({"coordinator": {"term": "0s"}}, "term"),
        ({"coordinator": {"term": "400ms"}}, "term"),
        ({"servers": {"delay": "soon"}}, "delay"),
        ({"servers": {"delay": "1s.."}}, "delay"),
        ({"workers": {"maxUnavailable": "abc"}}, "maxUnavailable"),
        ({"scaling": {"maxWorkers": 0}}, "maxWorkers"),
        ({"loki": {"external": {"url": "loki:3100"}}}, "url"),
        ({"loki": {"external": {"auth": "digest"}}}, "auth"),
        ({"fullnameOverride": "Oku"}, "fullnameOverride"),
    ],
)
def test_a_value_that_is_not_in_the_schema_is_refused_by_its_name(values: dict[str, Any], place: str) -> None:
    """A misspelt key changes nothing otherwise, and nobody sees it."""
    said = refuse(values)
    assert "values don't meet the specifications of the schema" in said
    assert place in said


def test_a_chart_that_contains_this_one_may_have_global_values() -> None:
    """Helm hands them to all charts."""
    assert render({"global": {"team": "load"}})


@pytest.mark.parametrize("file", VALUE_FILES, ids=lambda file: str(file.stem))
def test_value_files_are_taken(file: Any) -> None:
    """All of k8s/values."""
    assert render(files=(file,))


@pytest.mark.parametrize(
    "values",
    [
        {"servers": {"delay": delay}}
        for delay in ("0s", "20ms", "0..3s", "5ms..80ms", "0.5s", "exp:50ms", "lognormal:40ms,0.5", "1_000us")
    ]
    + [{"coordinator": {"term": term}} for term in ("500ms", "1s", "2.5s", "10m", "1500ms")]
    + [{"scaling": {"idle": idle}} for idle in ("10s", "60s", "5m", "1.5h")]
    + [{"workers": {"maxUnavailable": most}} for most in (0, 1, "10%")],
    ids=str,
)
def test_what_can_be_is_taken(values: dict[str, Any]) -> None:
    """The patterns of the schema refuse nothing that the programs take."""
    assert render(values)
