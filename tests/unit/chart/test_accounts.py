"""The service accounts of the components."""

from tests.unit.chart.rendering import COMPONENTS, find, find_kind, find_pods, render


def test_each_component_has_an_account_of_its_own() -> None:
    """No token is in a pod, but that of the coordinator, which has rights, and that of `helm test`."""
    objects = render(release="night")
    accounts = {each["metadata"]["name"]: each for each in find_kind(objects, "ServiceAccount")}
    assert accounts.keys() == {f"night-{name}" for name in (*COMPONENTS, "test")}
    assert all(each["automountServiceAccountToken"] is False for each in accounts.values())
    for name, pod in find_pods(objects).items():
        assert pod["spec"]["serviceAccountName"] == f"night-{name}"
        assert pod["spec"]["automountServiceAccountToken"] is (name in {"coordinator", "test"})


def test_an_account_is_named_annotated_or_left_to_others() -> None:
    """The rights of the coordinator go with the account that its pod has."""
    mine = {"name": "mine", "annotations": {"example.com/role": "load"}}
    theirs = {"workers": {"pod": {"serviceAccount": mine | {"create": False}}}}
    rights = {"scaling": {"restrictPatches": True}}
    objects = render({"coordinator": {"pod": {"serviceAccount": mine}}, **theirs, **rights})
    assert find(objects, "ServiceAccount", "mine")["metadata"]["annotations"] == mine["annotations"]
    pods = find_pods(objects)
    assert all(pods[name]["spec"]["serviceAccountName"] == "mine" for name in ("coordinator", "workers"))
    assert find(objects, "RoleBinding", "oku-coordinator")["subjects"][0]["name"] == "mine"
    [condition] = find(objects, "ValidatingAdmissionPolicy", "oku-coordinator.load")["spec"][
        "matchConditions"
    ]
    assert "'system:serviceaccount:load:mine'" in condition["expression"]

    none = render({"pods": {"serviceAccount": {"create": False}}, "scaling": {"enabled": False}})
    assert [each["metadata"]["name"] for each in find_kind(none, "ServiceAccount")] == ["oku-test"]
    assert all(
        pod["spec"]["serviceAccountName"] == "default"
        for name, pod in find_pods(none).items()
        if name != "test"
    )
