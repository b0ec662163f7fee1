from pathlib import Path

import pytest
from tests.unit.chart.rendering import evaluate, find, find_kind, find_pods, read_environment, render


def test_the_number_of_workers_and_servers_is_not_in_the_manifest() -> None:
    """It belongs to the coordinator: what is not in the manifest, no upgrade and no rollback resets."""
    objects = render()
    for name in ("oku-workers", "oku-servers"):
        assert "replicas" not in find(objects, "Deployment", name)["spec"]
    # Without scaling the number is in the manifest. Without scaling nobody else sets it.
    values = {"scaling": {"enabled": False}, "workers": {"replicas": 5},
              "servers": {"replicas": 3, "autoscaling": {"enabled": False}}}  # fmt: skip
    objects = render(values)
    assert find(objects, "Deployment", "oku-workers")["spec"]["replicas"] == 5
    assert find(objects, "Deployment", "oku-servers")["spec"]["replicas"] == 3


def test_servers_are_never_taken_away_in_the_middle_of_a_run() -> None:
    """The autoscaler adds only: a server that leaves takes its counts along."""
    spec = find(render({"scaling": {"maxServers": 7}}), "HorizontalPodAutoscaler", "oku-servers")["spec"]
    assert spec["scaleTargetRef"]["name"] == "oku-servers"
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 7)
    assert spec["behavior"]["scaleDown"] == {"selectPolicy": "Disabled"}
    # Without scaling the autoscaler takes servers away too.
    spec = find(render({"scaling": {"enabled": False}}), "HorizontalPodAutoscaler", "oku-servers")["spec"]
    assert spec["behavior"].keys() == {"scaleUp"}


def test_workers_are_spread_over_the_nodes_that_they_may_be_on() -> None:
    """A node with a taint counts for nothing, and so do the workers of a template that is replaced."""
    values = {"workers": {"spreadOverNodes": "DoNotSchedule"}}
    (constraint,) = find_pods(render(values))["workers"]["spec"]["topologySpreadConstraints"]
    assert constraint["whenUnsatisfiable"] == "DoNotSchedule"
    assert constraint["nodeTaintsPolicy"] == "Honor"
    assert constraint["matchLabelKeys"] == ["pod-template-hash"]


@pytest.mark.parametrize(
    ("scaling", "asked"),
    [({}, " --workers 4"), ({"maxWorkers": 3}, " --workers 3"), ({"enabled": False}, "")],
)
def test_the_run_in_the_notes_is_allowed(tmp_path: Path, scaling: dict[str, object], asked: str) -> None:
    """It asks for no more workers than a run may have."""
    template = 'notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}'
    notes = evaluate(template, {"scaling": scaling}, tmp_path)["notes"]
    assert f"oku run --kube --namespace load --release oku --requests 1M{asked}\n" in notes


def test_without_servers_there_is_nothing_of_them() -> None:
    """There is no test either, since it runs against them."""
    objects = render({"servers": {"enabled": False}})
    components = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in objects}
    assert components == {"coordinator", "workers", "valkey", "loki", "grafana"}
    environment = read_environment(find_pods(objects)["coordinator"])
    assert (
        not {"OKU_SERVER_URLS", "OKU_KUBE_SERVERS", "OKU_KUBE_SERVERS_MIN", "OKU_KUBE_SERVERS_MAX"}
        & environment.keys()
    )
    rules = find(objects, "Role", "oku-coordinator")["rules"]
    assert [rule.get("resourceNames") for rule in rules] == [["oku-workers"], ["oku-workers"], None]


def test_there_is_one_coordinator_at_a_time() -> None:
    """The old one ends before the new one starts."""
    spec = find(render(), "Deployment", "oku-coordinator")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    # Servers are found by all their addresses. A headless Service resolves to the addresses of its pods.
    assert find(render(), "Service", "oku-servers")["spec"]["clusterIP"] == "None"
    # A budget holds workers when nodes are drained.
    (budget,) = find_kind(render(), "PodDisruptionBudget")
    assert budget["metadata"]["name"] == "oku-workers"
    assert budget["spec"]["maxUnavailable"] == 1
