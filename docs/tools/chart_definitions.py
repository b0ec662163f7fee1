"""Parts of objects of Kubernetes in the chart's JSON Schema: values refer to them by `#/definitions/NAME`."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_SOME_TEXT: Schema = {"type": "string", "minLength": 1}
_FLAG: Schema = {"type": ["boolean", "null"]}
_ID: Schema = {"type": ["integer", "null"], "minimum": 0}
_MAP: Schema = {"type": ["object", "null"]}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}


def _close(properties: Mapping[str, Schema], *required: str) -> Schema:
    """A mapping with these keys and no others."""
    closed: Schema = {"type": "object", "additionalProperties": False, "properties": dict(properties)}
    return closed | {"required": list(required)} if required else closed


def _or_null(schema: Schema) -> Schema:
    return schema | {"type": [schema["type"], "null"]}


def _list(items: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": items, **limits}


def _enumerate(*names: str) -> Schema:
    return {"enum": [*names, None]}


_OF_BOTH: Mapping[str, Schema] = {
    "appArmorProfile": _MAP,
    "runAsGroup": _ID,
    "runAsNonRoot": _FLAG,
    "runAsUser": _ID,
    "seLinuxOptions": _MAP,
    "seccompProfile": _MAP,
}
"""What the security contexts of a pod and of a container have in common; null removes a key."""
_OF_PODS: Mapping[str, Schema] = {
    "fsGroup": _ID,
    "fsGroupChangePolicy": _enumerate("OnRootMismatch", "Always"),
    "seLinuxChangePolicy": _enumerate("MountOption", "Recursive"),
    "supplementalGroups": _or_null(_list({"type": "integer", "minimum": 0})),
    "supplementalGroupsPolicy": _enumerate("Merge", "Strict"),
    "sysctls": _or_null(_list(_close({"name": _TEXT, "value": _TEXT}, "name", "value"))),
}
_NAMES = _or_null(_list(_TEXT))
_OF_CONTAINERS: Mapping[str, Schema] = {
    "allowPrivilegeEscalation": _FLAG,
    "capabilities": _or_null(_close({"add": _NAMES, "drop": _NAMES})),
    "privileged": _FLAG,
    "procMount": {"type": ["string", "null"]},
    "readOnlyRootFilesystem": _FLAG,
}
_QUANTITY: Schema = {"type": ["string", "number", "null"]}
_QUANTITIES: Schema = {
    "type": ["object", "null"],
    "patternProperties": {"^(cpu|memory|ephemeral-storage|hugepages-.+|[^/]+/.+)$": _QUANTITY},
    "additionalProperties": False,
}
_SOURCE = _close({"name": _SOME_TEXT, "optional": {"type": "boolean"}}, "name")
_DURATION: Schema = {"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
_CONTAINER_NAME: Schema = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"}
_GATE: Mapping[str, Schema] = {
    "group": _TEXT, "kind": _TEXT, "namespace": _TEXT, "name": _SOME_TEXT, "sectionName": _TEXT, "port": _PORT
}  # fmt: skip

DEFINITIONS: Mapping[str, Schema] = {
    "podSecurityContext": _or_null(_close({**_OF_BOTH, **_OF_PODS})),
    "securityContext": _or_null(_close({**_OF_BOTH, **_OF_CONTAINERS})),
    "dnsConfig": _or_null(
        _close(
            {
                "nameservers": _or_null(_list(_TEXT, maxItems=3)),
                "searches": _or_null(_list(_TEXT, maxItems=32)),
                "options": _or_null(_list(_close({"name": _SOME_TEXT, "value": _TEXT}, "name"))),
            }
        )
    ),
    "hostAliases": _or_null(
        _list(_close({"ip": _SOME_TEXT, "hostnames": _list(_TEXT, minItems=1)}, "ip", "hostnames"))
    ),
    "envFrom": _or_null(
        _list(_close({"prefix": _TEXT, "configMapRef": _SOURCE, "secretRef": _SOURCE}) | {"minProperties": 1})
    ),
    # Fields of containers grow with Kubernetes, which refuses those that it does not know.
    "containers": _or_null(
        _list(
            {
                "type": "object",
                "required": ["name", "image"],
                "properties": {"name": _CONTAINER_NAME, "image": _SOME_TEXT},
            }
        )
    ),
    "textByKey": {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}},
    "secretName": {
        "type": ["string", "null"],
        "maxLength": 253,
        "pattern": "^$|^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
    },
    "secretKey": {"type": "string", "maxLength": 253, "pattern": "^[A-Za-z0-9._-]+$"},
    "quantity": _QUANTITY,
    "resources": _close(
        {"requests": _QUANTITIES, "limits": _QUANTITIES, "claims": _list({"type": "object"})}
    ),
    "ingressTls": _or_null(_list(_close({"secretName": _TEXT, "hosts": _list(_TEXT)}))),
    "parentRefs": _or_null(_list(_close(_GATE, "name"))),
    "routeTimeouts": _or_null(_close({"request": _DURATION, "backendRequest": _DURATION})),
}
