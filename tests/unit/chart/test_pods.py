from pathlib import Path

import pytest
from tests.unit.chart.rendering import VALUE_FILES, find_pods, read_environment, render

RESTRICTED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
                      "projected", "secret"}  # fmt: skip
_OWN = ("coordinator", "workers", "servers", "test")
"""The components that are Oku."""
SAFE_SYSCTLS = {"net.ipv4.ip_local_port_range"}


@pytest.mark.parametrize("files", [(), *((file,) for file in VALUE_FILES)])
def test_every_pod_passes_the_restricted_standard(files: tuple[Path, ...]) -> None:
    """Every pod satisfies https://kubernetes.io/docs/concepts/security/pod-security-standards/."""
    pods = find_pods(render(files=files))
    assert {"coordinator", "workers", "servers", "valkey", "test"} <= pods.keys()
    for pod in pods.values():
        spec = pod["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & spec.keys()
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {each["name"] for each in spec["securityContext"].get("sysctls", [])} <= SAFE_SYSCTLS
        assert {key for volume in spec["volumes"] for key in volume} - {"name"} <= RESTRICTED_VOLUMES
        for container in spec["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not any("hostPort" in port for port in container.get("ports", []))


def test_root_file_systems_are_read_only_and_resources_are_set() -> None:
    """A pod writes to its volumes only, and says what it needs."""
    for pod in find_pods(render()).values():
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert container["resources"]["limits"].keys() == {"memory"}
    # No pod has variables of services. A Service named oku would set OKU_PORT.
    assert all(pod["spec"]["enableServiceLinks"] is False for pod in find_pods(render()).values())


def test_pod_values_of_a_component_go_before_those_of_all() -> None:
    """Maps are merged, lists and texts are replaced, and labels that select stay."""
    mine = {"app.kubernetes.io/component": "mine", "team": "load"}
    objects = render(
        {
            "pods": {"labels": mine, "nodeSelector": {"a": "1", "b": "1"}, "priorityClassName": "low",
                     "tolerations": [{"key": "x", "operator": "Exists"}],
                     "extraEnv": [{"name": "TZ", "value": "UTC"}]},
            "workers": {"pod": {"nodeSelector": {"b": "2"}, "priorityClassName": "lowest",
                                "tolerations": []}},
        }
    )  # fmt: skip
    pods = find_pods(objects)
    assert pods.keys() == {"coordinator", "workers", "servers", "valkey", "loki", "grafana", "test"}
    assert all(pod["metadata"]["labels"]["team"] == "load" for pod in pods.values())
    assert pods["workers"]["spec"]["nodeSelector"] == {"a": "1", "b": "2"}
    assert pods["workers"]["spec"]["priorityClassName"] == "lowest"
    assert "tolerations" not in pods["workers"]["spec"]
    assert pods["loki"]["spec"]["nodeSelector"] == {"a": "1", "b": "1"}
    assert pods["loki"]["spec"]["priorityClassName"] == "low"
    assert pods["loki"]["spec"]["tolerations"] == [{"key": "x", "operator": "Exists"}]
    assert all(read_environment(pod)["TZ"] == "UTC" for name, pod in pods.items() if name != "test")


def test_volumes_of_ones_own_come_beside_those_of_the_chart() -> None:
    """Every pod but that of `helm test` has them; a list of a component replaces that of all."""
    certs = {"name": "certs", "secret": {"secretName": "ca"}}
    rows = {"name": "rows", "configMap": {"name": "rows"}}
    mounts = [{"name": "certs", "mountPath": "/certs", "readOnly": True}]
    own_mounts = [*mounts, {"name": "rows", "mountPath": "/data"}, {"name": "tmp", "mountPath": "/cache"}]
    before = find_pods(render())
    pods = find_pods(
        render(
            {
                "pods": {"extraVolumes": [certs], "extraVolumeMounts": mounts},
                "workers": {"pod": {"extraVolumes": [certs, rows], "extraVolumeMounts": own_mounts}},
            }
        )
    )
    for name, pod in pods.items():
        volumes = {"workers": [certs, rows], "test": []}.get(name, [certs])
        assert pod["spec"]["volumes"] == before[name]["spec"]["volumes"] + volumes
        [container], [container_before] = pod["spec"]["containers"], before[name]["spec"]["containers"]
        added = {"workers": own_mounts, "test": []}.get(name, mounts)
        assert container["volumeMounts"] == container_before["volumeMounts"] + added


def test_an_image_is_named_by_registry_tag_and_digest() -> None:
    """The tag is the app's version unless one is given; a digest goes before it."""
    digest = "sha256:" + "0a" * 32
    values = {"imageRegistry": "mirror.example.com/x", "imagePullSecrets": [{"name": "pull"}],
              "image": {"digest": digest}, "loki": {"image": {"tag": "2"}}}  # fmt: skip
    pods = find_pods(render(values))
    images = {name: pod["spec"]["containers"][0]["image"] for name, pod in pods.items()}
    assert {images[name] for name in _OWN} == {f"mirror.example.com/x/oku/oku@{digest}"}
    assert images["loki"] == "mirror.example.com/x/grafana/loki:2"
    assert images["valkey"] == "mirror.example.com/x/valkey/valkey:9.1.2"
    assert all(pod["spec"]["imagePullSecrets"] == [{"name": "pull"}] for pod in pods.values())


def test_one_image_serves_all_components_of_oku() -> None:
    """The arguments of its container say which one it is; `helm test` brings a script instead."""
    containers = {name: pod["spec"]["containers"][0] for name, pod in find_pods(render()).items()}
    assert {containers[name]["image"] for name in _OWN} == {"localhost/oku/oku:0.1.0"}
    assert {name: containers[name]["args"][0] for name in _OWN if "args" in containers[name]} == {
        "coordinator": "coordinator", "workers": "worker", "servers": "server"
    }  # fmt: skip
    assert [name for name in _OWN if "command" in containers[name]] == ["test"]


def test_a_worker_is_given_longer_than_it_takes_to_drain() -> None:
    """Otherwise it would be killed with requests that it could have reported."""
    spec = find_pods(render({"workers": {"graceSeconds": 60}}))["workers"]
    assert read_environment(spec)["OKU_GRACE"] == "60s"
    assert spec["spec"]["terminationGracePeriodSeconds"] == 85
    # The liveness probe of a worker asks its port.
    pod = find_pods(render())["workers"]
    (container,) = pod["spec"]["containers"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    port = str({each["name"]: each["containerPort"] for each in container["ports"]}["health"])
    assert read_environment(pod)["OKU_HEALTH_PORT"] == port


def test_user_code_is_allowed_by_one_value() -> None:
    """Workers are told its limits then."""
    for allows in (False, True):
        pods = find_pods(render({"allowUserCode": allows, "workers": {"userCodeEnv": ["REGION", "TIER"]}}))
        coordinator, workers = read_environment(pods["coordinator"]), read_environment(pods["workers"])
        assert coordinator.get("OKU_ALLOW_USER_CODE") == ("true" if allows else None)
        words = ("USER_CODE", "INHERIT", "CONFINE")
        limits = {name: value for name, value in workers.items() if any(word in name for word in words)}
        told = {
            "OKU_USER_CODE_MEMORY": "640MB",
            "OKU_USER_CODE_NICENESS": "5",
            "OKU_CONFINE_USER_CODE": "true",
            "OKU_REQUIRE_CONFINEMENT": "false",
            "OKU_INHERIT_ENV": "REGION TIER",
        }
        assert limits == (told if allows else {})
    assert "OKU_ALLOW_USER_CODE" not in read_environment(find_pods(render())["coordinator"])
    for confines, requires in [("true", "true"), ("false", "false")]:
        # An operator says whether user code is confined. As the worker reads it.
        values = {"confineUserCode": confines == "true", "requireConfinement": requires == "true"}
        told = read_environment(find_pods(render({"allowUserCode": True, "workers": values}))["workers"])
        assert (told["OKU_CONFINE_USER_CODE"], told["OKU_REQUIRE_CONFINEMENT"]) == (confines, requires)
