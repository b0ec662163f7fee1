"""What pods may write to their nodes."""

from tests.kit.kubernetes.platform_values import STORAGE
from tests.unit.chart.rendering import COMPONENTS, Object, find_pods, read_limits, render


def test_every_empty_dir_has_a_limit_that_a_value_sets() -> None:
    """Without a volume, the size of the data is that of the volume that is not there."""
    without = {
        name: {"persistence": {"enabled": False, "size": "7Gi"}} for name in ("coordinator", "valkey", "loki")
    }
    for values, data in (({}, None), (without, "7Gi")):
        pods = find_pods(render(values))
        for name, pod in pods.items():
            limits = [each["emptyDir"] for each in pod["spec"]["volumes"] if "emptyDir" in each]
            assert all(each.get("sizeLimit") for each in limits), name
        for name in without:
            assert (read_limits(pods[name]).get("ledger" if name == "coordinator" else "data")) == data
    for none in (None, ""):
        limits = find_pods(render({"pods": {"sizeLimits": {"tmp": none}}}))["coordinator"]["spec"]["volumes"]
        assert {"name": "tmp", "emptyDir": {}} in limits


def _read_resources(resources: Object) -> Object:
    pods = find_pods(render({part: {"resources": resources} for part in (*COMPONENTS, "tests")}))
    return {name: pod["spec"]["containers"][0]["resources"] for name, pod in pods.items()}


def test_ephemeral_storage_is_requested_and_limited() -> None:
    """The pod of `helm test` has its resources, too; `null` removes what a file of values says."""
    before, after = _read_resources({}), _read_resources(STORAGE)
    for name, found in after.items():
        assert found == {key: before[name][key] | STORAGE[key] for key in STORAGE}
    assert _read_resources({key: {"ephemeral-storage": None} for key in STORAGE}) == before
