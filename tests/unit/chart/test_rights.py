from typing import Any

from tests.unit.chart.rendering import find, find_kind, find_pods, read_environment, render


def test_the_coordinator_may_scale_its_two_deployments_and_mark_pods() -> None:
    """It reads why a Deployment has no pods, and may do nothing else: no Secret, no deletion."""
    objects = render(release="night")
    assert find(objects, "Role", "night-coordinator")["rules"] == [
        {
            "apiGroups": ["apps"],
            "resources": ["deployments/scale"],
            "resourceNames": ["night-workers", "night-servers"],
            "verbs": ["get", "patch"],
        },
        {
            "apiGroups": ["apps"],
            "resources": ["deployments"],
            "resourceNames": ["night-workers", "night-servers"],
            "verbs": ["get"],
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "patch"]},
    ]
    deployments = {each["metadata"]["name"] for each in find_kind(objects, "Deployment")}
    assert {"night-workers", "night-servers"} <= deployments
    binding = find(objects, "RoleBinding", "night-coordinator")
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "night-coordinator", "namespace": "load"}
    ]
    assert find_pods(objects)["coordinator"]["spec"]["serviceAccountName"] == "night-coordinator"


def test_there_are_no_cluster_wide_rights() -> None:
    """There are neither ClusterRoles nor ClusterRoleBindings."""
    kinds = {each["kind"] for each in render({"scaling": {"restrictPatches": True}})}
    assert not {"ClusterRole", "ClusterRoleBinding"} & kinds
    # Without scaling the coordinator has no rights.
    objects = render({"scaling": {"enabled": False}})
    for kind in ("Role", "RoleBinding"):
        assert {each["metadata"]["name"] for each in find_kind(objects, kind)} == {"oku-test"}
    coordinator = find_pods(objects)["coordinator"]
    assert coordinator["spec"]["automountServiceAccountToken"] is False
    assert not [name for name in read_environment(coordinator) if name.startswith("OKU_KUBE")]


def test_the_rights_of_helm_test() -> None:
    """The rights to delete pods are there only while `helm test` runs."""
    hooks = [each for each in render() if each["metadata"].get("annotations", {}).get("helm.sh/hook")]
    assert sorted(each["kind"] for each in hooks) == [
        "ConfigMap",
        "NetworkPolicy",
        "Pod",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ]
    for each in hooks:
        policy = each["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
        assert policy.startswith("before-hook-creation,hook-succeeded")
        # One that failed stays, so that its log can be read; it has no rights any more.
        assert ("hook-failed" in policy) == (each["kind"] != "Pod")
    # Helm test may give its own rights back and no others. A Helm that is interrupted removes nothing.
    [role] = [each for each in find_kind(render(), "Role") if each["metadata"]["name"] == "oku-test"]
    [rule] = [rule for rule in role["rules"] if "rbac.authorization.k8s.io" in rule["apiGroups"]]
    assert (rule["resources"], rule["verbs"]) == (["rolebindings"], ["delete"])
    assert rule["resourceNames"] == ["oku-test"]
    assert read_environment(find_pods(render())["test"])["TEST_ROLE_BINDING"] == "oku-test"


def test_users_of_kube_get_what_it_needs_and_no_more() -> None:
    """It lists Services, and reads the one of the coordinator, the Secret that this names, and pods."""
    users: list[dict[str, str]] = [
        {"kind": "User", "name": "ada@example.com"},
        {"kind": "Group", "name": "testers"},
        {"kind": "ServiceAccount", "name": "ci"},
        {"kind": "ServiceAccount", "name": "ci", "namespace": "builds"},
    ]
    mine = {"existingSecret": "mine", "key": "t"}
    cases: list[tuple[dict[str, Any], str]] = [({}, "night-token"), ({"token": mine}, "mine")]
    for values, secret in cases:
        objects = render({"coordinator": values | {"kubeUsers": users}}, release="night")
        assert find(objects, "Role", "night-kube-users")["rules"] == [
            {"apiGroups": [""], "resources": ["services"], "verbs": ["list"]},
            {
                "apiGroups": [""],
                "resources": ["services"],
                "resourceNames": ["night-coordinator"],
                "verbs": ["get"],
            },
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create"]},
        ]
    binding = find(objects, "RoleBinding", "night-kube-users")
    assert binding["roleRef"]["name"] == "night-kube-users"
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    assert binding["subjects"] == [
        users[0] | group, users[1] | group, users[2] | {"namespace": "load"}, users[3]
    ]  # fmt: skip
    assert not [each for each in find_kind(render(), "Role") if "kube-users" in each["metadata"]["name"]]


def test_patches_are_restricted_for_the_coordinators_account_alone() -> None:
    """A policy of the cluster restricts them, and looks at this namespace only."""
    objects = render({"scaling": {"restrictPatches": True}}, release="night", namespace="there")
    policy = find(objects, "ValidatingAdmissionPolicy", "night-coordinator.there")
    (condition,) = policy["spec"]["matchConditions"]
    assert "'system:serviceaccount:there:night-coordinator'" in condition["expression"]
    expressions = " ".join(each["expression"] for each in policy["spec"]["validations"])
    assert "== 'night'" in expressions
    assert "== 'workers'" in expressions
    binding = find(objects, "ValidatingAdmissionPolicyBinding", "night-coordinator.there")
    assert binding["spec"]["policyName"] == "night-coordinator.there"
    assert binding["spec"]["validationActions"] == ["Deny"]
