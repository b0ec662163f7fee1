"""Values of the chart that platform teams set: one for each key of `pods`, and what stands beside the pods."""

from collections.abc import Mapping
from typing import Any

from tests.unit.chart.rendering import CHART

_IMAGE = "localhost/oku/oku:0.1.0"
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}

OPENSHIFT = CHART.parents[1] / "k8s" / "values" / "openshift.yaml"

ANY_USER = 1_000_650_000
"""A user and a group as the restricted-v2 SCC of OpenShift picks them."""


def build_container(name: str, *arguments: str) -> dict[str, Any]:
    """A container that a namespace of the restricted standard lets in; its image is on the node."""
    return {"name": name, "image": _IMAGE, "command": list(arguments), "securityContext": _RESTRICTED}


PODS: Mapping[str, Any] = {
    "labels": {"team": "load"},
    "annotations": {"example.com/owner": "load"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "load", "operator": "Exists"}],
    "affinity": {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "oku"}},
                    },
                }
            ]
        }
    },
    "priorityClassName": "low",
    "runtimeClassName": "gvisor",
    "serviceAccount": {"create": False, "name": "load", "automount": True},
    "podSecurityContext": {"runAsUser": ANY_USER, "runAsGroup": 0, "fsGroup": ANY_USER},
    "securityContext": {"runAsNonRoot": True},
    "dnsPolicy": "ClusterFirst",
    "dnsConfig": {"options": [{"name": "ndots", "value": "2"}], "searches": ["example.com"]},
    "hostAliases": [{"ip": "10.0.0.7", "hostnames": ["shop.example.com"]}],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "envFrom": [{"secretRef": {"name": "more", "optional": True}}, {"prefix": "A_", "configMapRef": {"name": "b"}}],
    "extraVolumes": [{"name": "shared", "emptyDir": {"sizeLimit": "1Mi"}}],
    "extraVolumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    "extraInitContainers": [build_container("first", "true")],
    "extraContainers": [build_container("beside", "sleep", "infinity")],
    "sizeLimits": {"tmp": "3Gi"},
}  # fmt: skip
"""A value for each key of `pods`, none of which is the default."""

STORAGE = {"requests": {"ephemeral-storage": "64Mi"}, "limits": {"ephemeral-storage": "16Gi"}}
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
INGRESS = {
    "enabled": True,
    "className": "nginx",
    "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
    "hosts": ["oku.example.com"],
    "tls": [{"secretName": "oku-tls", "hosts": ["oku.example.com"]}],
}
HTTP_ROUTE = {
    "enabled": True,
    "annotations": {"example.com/owner": "load"},
    "parentRefs": [{"name": "public", "namespace": "gateways", "sectionName": "https"}],
    "hostnames": ["oku.example.com"],
    "filters": [
        {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["Server"]}},
    ],
    "timeouts": {"request": "0s"},
}
OBJECTS: list[Any] = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "{{ .Release.Name }}-extra"},
        "data": {"coordinator": '{{ include "oku.coordinatorUrl" . }}'},
    },
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include "oku.name" (dict "root" . "suffix" "text") }}\n',
]
EVERYTHING: Mapping[str, Any] = {
    "pods": PODS,
    "extraObjects": OBJECTS,
    "networkPolicy": {"apiClients": [PEER], "grafanaClients": [PEER]},
    "coordinator": {
        "resources": STORAGE, "ingress": INGRESS, "httpRoute": HTTP_ROUTE, "maxUnavailable": 0
    },
    "grafana": {"resources": STORAGE, "ingress": INGRESS, "httpRoute": HTTP_ROUTE},
    **{name: {"resources": STORAGE} for name in ("workers", "servers", "valkey", "loki", "tests")},
}  # fmt: skip
"""All of them in one release."""
