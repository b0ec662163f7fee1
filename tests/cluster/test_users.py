"""What people need who use a release by `oku --kube`."""

import copy
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.kubernetes.cluster import KubectlError
from tests.kit.kubernetes.kubeconfig import build_environment
from tests.kit.kubernetes.release import Release
from tests.kit.runs.local_run import OKU, wait_until

_ACCOUNT = "tester"
"""Named in `coordinator.kubeUsers` of the values for tests."""
_PATIENCE_S = 60.0
_LOOK_S = 0.1


@pytest.fixture
def environment(release: Release, tmp_path: Path) -> dict[str, str]:
    """That of a user who has the rights of the Role and no others."""
    where = ("-n", release.namespace)
    release.cluster.call("create", "serviceaccount", _ACCOUNT, *where)
    token = release.cluster.call("create", "token", _ACCOUNT, *where).strip()
    return build_environment(release.cluster, tmp_path, token)


def test_users_of_kube_need_each_right_that_they_have(release: Release, environment: dict[str, str]) -> None:
    """With all of them runs are seen; without one of them the command says in a line what is forbidden."""
    cluster, role = release.cluster, f"{release.name}-kube-users"
    rules = cluster.fetch("role", role, release.namespace)["rules"]
    assert call(release, environment).returncode == 0

    def grant(granted: list[dict[str, Any]]) -> None:
        cluster.call(
            "patch", "role", role, "-n", release.namespace, "--type=merge", "--patch-file=/dev/stdin",
            document={"rules": granted},
        )  # fmt: skip

    try:
        for right, rest in take_one_out(rules):
            grant(rest)
            refused = wait_for_refusal(release, environment, right)
            assert "orbidden" in refused, f"{right}: {refused}"
            assert refused.count("\n") == 1, refused
    finally:
        grant(rules)
    wait_until(
        lambda: call(release, environment).returncode == 0, _PATIENCE_S, "the rights are back", _LOOK_S
    )
    identity = ("-n", release.namespace, f"--as=system:serviceaccount:{release.namespace}:{_ACCOUNT}")
    for denied in (
        "list secrets",
        f"get secret/{release.name}-message-key",
        "create pods/exec",
        "delete pods",
    ):
        with pytest.raises(KubectlError):
            cluster.call("auth", "can-i", *denied.split(), *identity)


def take_one_out(rules: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each right of some rules, and the rules without it."""
    for number, rule in enumerate(rules):
        for verb in rule["verbs"]:
            rest = copy.deepcopy(rules)
            rest[number]["verbs"].remove(verb)
            yield f"{verb} {rule['resources']}", [each for each in rest if each["verbs"]]


def wait_for_refusal(release: Release, environment: dict[str, str], right: str) -> str:
    """What `oku` says as soon as the API server knows that a right is gone."""
    said: list[str] = []

    def is_refused() -> bool:
        done = call(release, environment)
        said.append(done.stderr)
        return done.returncode != 0

    wait_until(is_refused, _PATIENCE_S, f"without `{right}` it fails", _LOOK_S)
    return said[-1]


def call(release: Release, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """`oku runs` as the user."""
    flags = ("--kube", "--namespace", release.namespace, "--release", release.name)
    return subprocess.run(
        [*OKU, "runs", *flags], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
