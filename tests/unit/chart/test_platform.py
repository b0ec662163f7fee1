"""What platform teams set: each component takes each value, or is listed here with what it does not take."""

from collections.abc import Callable, Mapping
from typing import Any

import yaml
from tests.kit.kubernetes.cluster import ANY_USER
from tests.kit.kubernetes.platform_values import OPENSHIFT, PODS
from tests.unit.chart.rendering import CHART, COMPONENTS, Object, find_pods, read_limits, render

NOT_TAKEN = {
    # It is ours alone, and ends by itself.
    "test": {"serviceAccount", "extraEnv", "envFrom", "extraVolumes", "extraVolumeMounts",
             "extraInitContainers", "extraContainers"},
    # Its data has a volume, and its passwords a limit that is fixed.
    "valkey": {"sizeLimits"},
}  # fmt: skip


def _read_account(pod: Object) -> Object:
    spec = pod["spec"]
    return {"name": spec["serviceAccountName"], "automount": spec["automountServiceAccountToken"]}


READERS: Mapping[str, Callable[[Object], Any]] = {
    "labels": lambda pod: pod["metadata"]["labels"],
    "annotations": lambda pod: pod["metadata"].get("annotations"),
    "serviceAccount": _read_account,
    "podSecurityContext": lambda pod: pod["spec"]["securityContext"],
    "securityContext": lambda pod: pod["spec"]["containers"][0]["securityContext"],
    "extraEnv": lambda pod: pod["spec"]["containers"][0].get("env"),
    "envFrom": lambda pod: pod["spec"]["containers"][0].get("envFrom"),
    "extraVolumes": lambda pod: pod["spec"]["volumes"],
    "extraVolumeMounts": lambda pod: pod["spec"]["containers"][0]["volumeMounts"],
    "extraInitContainers": lambda pod: pod["spec"].get("initContainers"),
    "extraContainers": lambda pod: pod["spec"]["containers"][1:],
    "sizeLimits": read_limits,
}
"""Where a pod has the value of a key, if not in a field of the same name."""


def _takes(pod: Object, key: str) -> bool:
    found = READERS[key](pod) if key in READERS else pod["spec"].get(key)
    wanted = PODS[key]
    if key == "serviceAccount":
        wanted = {"name": wanted["name"], "automount": wanted["automount"]}
    return _contains(found, wanted)


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(_contains(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return all(any(_contains(each, item) for each in found) for item in wanted)
    return bool(found == wanted)


def _list_taken(pod: Object) -> set[str]:
    return {key for key in PODS if _takes(pod, key)}


def test_the_table_has_each_key_and_each_component() -> None:
    """A key that the chart gets later is tried on each component, too."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    assert PODS.keys() == defaults["pods"].keys()
    assert {name for name, value in defaults.items() if "pod" in (value or {})} == set(COMPONENTS)
    assert find_pods(render()).keys() == {*COMPONENTS, "test"}
    for name, pod in find_pods(render()).items():
        assert not _list_taken(pod), f"{name} has by default what the table sets"


def test_each_component_takes_each_value_of_all_pods() -> None:
    """What a component does not take is listed above; the values say who Valkey and Grafana are."""
    pods = find_pods(render({"pods": PODS}))
    left = {name: PODS.keys() - _list_taken(pod) for name, pod in pods.items()}
    of_images = {name: {"podSecurityContext"} for name in ("valkey", "grafana")}
    expected = {name: NOT_TAKEN.get(name, set()) | of_images.get(name, set()) for name in pods}
    assert left == expected


def test_a_value_of_a_component_is_taken_by_that_component_alone() -> None:
    """Only the pod of `helm test` has what the coordinator has."""
    for component in COMPONENTS:
        pods = find_pods(render({component: {"pod": PODS}}))
        having = {component, "test"} if component == "coordinator" else {component}
        for name, pod in pods.items():
            expected = PODS.keys() - NOT_TAKEN.get(name, set()) if name in having else set()
            assert _list_taken(pod) == expected, (component, name)


def test_extra_containers_come_after_that_of_the_chart() -> None:
    """`kubectl logs` and `kubectl exec` take the first."""
    names = {
        name: [each["name"] for each in pod["spec"]["containers"]]
        for name, pod in find_pods(render()).items()
    }
    for name, pod in find_pods(render({"pods": {"extraContainers": PODS["extraContainers"]}})).items():
        added = [] if name == "test" else ["beside"]
        assert [each["name"] for each in pod["spec"]["containers"]] == names[name] + added


def test_nothing_is_said_about_what_is_not_set() -> None:
    """What the API server drops would show in each `kubectl diff`."""
    for pod in find_pods(render()).values():
        [container] = pod["spec"]["containers"]
        assert "envFrom" not in container
        assert (
            not {"initContainers", "dnsPolicy", "dnsConfig", "hostAliases", "affinity"} & pod["spec"].keys()
        )
        empty = [
            key
            for part in (pod["spec"], container)
            for key, value in part.items()
            if value in ({}, [], None, "")
        ]
        assert not empty


IDS = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}


def test_security_contexts_are_merged_with_what_is_told() -> None:
    """The cluster picks user and groups of each pod; all else that is restricted stays."""
    for pod in find_pods(render(files=(OPENSHIFT,))).values():
        assert not IDS.keys() & pod["spec"]["securityContext"].keys()
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    # Null removes a value and what is left of a map stays.
    all_pods = {"pods": {"podSecurityContext": IDS, "securityContext": {"capabilities": None}}}
    pods = find_pods(render(all_pods))
    for name in ("coordinator", "workers", "servers", "loki", "test"):
        assert not IDS.keys() & pods[name]["spec"]["securityContext"].keys()
    assert pods["valkey"]["spec"]["securityContext"]["runAsUser"] == 999
    assert all("capabilities" not in pod["spec"]["containers"][0]["securityContext"] for pod in pods.values())
    one = find_pods(
        render({"workers": {"pod": {"podSecurityContext": IDS, "securityContext": {"capabilities": None}}}})
    )
    assert not IDS.keys() & one["workers"]["spec"]["securityContext"].keys()
    assert "capabilities" not in one["workers"]["spec"]["containers"][0]["securityContext"]
    assert one["servers"]["spec"]["securityContext"]["runAsUser"] == 10001
    gone = {"podSecurityContext": None, "securityContext": None}
    for without in ({"pods": gone}, {"workers": {"pod": gone}}):
        spec = find_pods(render(without))["workers"]["spec"]
        assert spec["securityContext"].keys() == {"sysctls"}
        assert "securityContext" not in spec["containers"][0]
    # Large ids stay whole numbers.
    wanted = {
        "podSecurityContext": {"runAsUser": ANY_USER, "fsGroup": ANY_USER, "supplementalGroups": [2**31 - 1]}
    }
    for values in ({"pods": wanted}, {"servers": {"pod": wanted}}):
        context = find_pods(render(values))["servers"]["spec"]["securityContext"]
        assert wanted["podSecurityContext"].items() <= context.items()
        assert type(context["runAsUser"]) is int
    # Kernel settings of ones own come beside that of the chart. `workers.portRange` sets one.
    mine = {"name": "net.ipv4.tcp_fin_timeout", "value": "10"}
    sysctls = find_pods(render({"pods": {"podSecurityContext": {"sysctls": [mine]}}}))
    assert sysctls["servers"]["spec"]["securityContext"]["sysctls"] == [mine]
    names = [each["name"] for each in sysctls["workers"]["spec"]["securityContext"]["sysctls"]]
    assert names == ["net.ipv4.ip_local_port_range", mine["name"]]


def test_names_of_the_charts_own_are_refused_for_extras() -> None:
    """The lists in validate.yaml are what the pods have: the API server would refuse a second one."""
    lines = (CHART / "templates" / "validate.yaml").read_text().splitlines()
    volumes, containers, paths = (
        next(line for line in lines if f"${name} := " in line) for name in ("volumes", "containers", "paths")
    )
    for component, pod in find_pods(render()).items():
        if component == "test":
            continue
        [container] = pod["spec"]["containers"]
        assert f'"{component}" "{container["name"]}"' in containers
        assert all(f'"{volume["name"]}"' in volumes for volume in pod["spec"]["volumes"]), component
        own = paths.partition(f'"{component}" (list ')[2].partition(")")[0]
        files = {each["mountPath"] for each in container["volumeMounts"] if "." in each["mountPath"]}
        missing = {each["mountPath"] for each in container["volumeMounts"]} - files
        assert {path for path in missing if f'"{path}"' not in own} == set(), component
