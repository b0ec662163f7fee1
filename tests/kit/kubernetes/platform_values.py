"""Values of the chart that platform teams set: one for each key of `pods`, and what is beside the pods."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kit.kubernetes.cluster import ANY_USER, build_container

OPENSHIFT = Path(__file__).parents[3] / "k8s" / "values" / "openshift.yaml"

_WAIT = ("sh", "-c", "trap exit TERM; sleep infinity & wait")
"""Ends at once when its pod is to go."""

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
    "envFrom": [
        {"secretRef": {"name": "more", "optional": True}},
        {"prefix": "A_", "configMapRef": {"name": "b"}},
    ],
    "extraVolumes": [{"name": "shared", "emptyDir": {"sizeLimit": "1Mi"}}],
    "extraVolumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    "extraInitContainers": [build_container("first", ["true"], user=ANY_USER)],
    "extraContainers": [build_container("beside", _WAIT, user=ANY_USER)],
    "sizeLimits": {"tmp": "3Gi"},
}  # fmt: skip
"""A value for each key of `pods`, none of which is the default."""

STORAGE: dict[str, Any] = {"requests": {"ephemeral-storage": "64Mi"}, "limits": {"ephemeral-storage": "16Gi"}}
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
INGRESS: dict[str, Any] = {
    "enabled": True,
    "className": "nginx",
    "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
    "hosts": ["oku.example.com"],
    "tls": [{"secretName": "oku-tls", "hosts": ["oku.example.com"]}],
}
HTTP_ROUTE: dict[str, Any] = {
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
    """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "oku.name" (dict "root" . "suffix" "text") }}
""",
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

_IN_PODS = PODS.keys() - {"priorityClassName", "runtimeClassName", "serviceAccount", "envFrom"}
INSTALLABLE: Mapping[str, Any] = {
    "pods": {key: PODS[key] for key in _IN_PODS}
    | {
        "serviceAccount": {"automount": True, "annotations": {"example.com/role": "load"}},
        "envFrom": [{"prefix": "EXTRA_", "configMapRef": {"name": "oku-extra"}}],
    },
    "valkey.pod.podSecurityContext": PODS["podSecurityContext"],
    "extraObjects": OBJECTS,
    "networkPolicy.apiClients": [PEER],
    "coordinator.ingress": INGRESS,
    "coordinator.maxUnavailable": 0,
}
"""Those for which a cluster needs no object and no resource of others, by the path of the value."""
