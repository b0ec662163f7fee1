from pathlib import Path
from typing import Any

import pytest
from tests.unit.chart.rendering import find, find_kind, render
from tests.unit.cli.kubectl_on_path import TOKEN, KubectlOnPath, build_secret, build_service

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.kube import kubectl as kubectl_module
from oku_cli.kube.kube_endpoint import KubeEndpoint, find_port
from oku_cli.kube.kube_pods import build_selector
from oku_core.errors import UserError

COORDINATOR = "app.kubernetes.io/name=oku,app.kubernetes.io/component=coordinator"


async def test_the_coordinator_is_found_and_reached(kubectl: KubectlOnPath) -> None:
    """It is found by labels in the current context and namespace, and its Service names the Secret."""
    async with Client(KubeEndpoint()) as client:
        assert await client.fetch_runs() == [{"run": "r1"}]
    services, secrets, forward = kubectl.calls
    assert services == f"--request-timeout=10s get services --selector {COORDINATOR} --output json"
    assert secrets == "--request-timeout=10s get secret/s --output json"
    assert forward == "port-forward --address 127.0.0.1 --pod-running-timeout 5s service/demo-oku :8700"


async def test_context_namespace_and_release_are_handed_on(kubectl: KubectlOnPath) -> None:
    """Every call of kubectl has them, and so has the command that resumes a run."""
    endpoint = KubeEndpoint(context="c", namespace="n", release="demo")
    async with Client(endpoint):
        pass
    assert all("--context c --namespace n" in call for call in kubectl.calls)
    assert "app.kubernetes.io/instance=demo" in kubectl.calls[0]
    assert endpoint.flags == ["--kube", "--context", "c", "--namespace", "n", "--release", "demo"]
    assert KubeEndpoint().flags == ["--kube"]


async def test_a_token_that_is_given_is_not_looked_for(kubectl: KubectlOnPath) -> None:
    """Some users may not read Secrets, and the Service of an old release names none."""
    service = build_service("demo")
    del service["metadata"]["annotations"]
    kubectl.set(
        services=[service], errors={"get secret": "Error from server (Forbidden): secrets is forbidden"}
    )
    async with Client(KubeEndpoint(token=TOKEN)) as client:
        assert await client.fetch_runs()


async def test_without_kubectl_nothing_can_be_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says that kubectl is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^--kube: kubectl is not on the PATH"):
        await enter(KubeEndpoint())


@pytest.mark.parametrize(
    ("endpoint", "settings", "message"),
    [
        (KubeEndpoint(), {"services": []}, "there is no Oku in the namespace of the kube context; install"),
        (
            KubeEndpoint(namespace="n", release="x"),
            {"services": []},
            "there is no release x of Oku in namespace n;",
        ),
        (
            KubeEndpoint(namespace="n"),
            {"services": [build_service("b"), build_service("a")]},
            "there are several releases in namespace n, name one by --release: a, b",
        ),
        (
            KubeEndpoint(),
            {"secrets": []},
            'cannot be read: Error from server (NotFound): secrets "s" not found',
        ),
        (
            KubeEndpoint(),
            {"errors": {"get secret": 'Error from server (Forbidden): secrets "s" is forbidden'}},
            "--token: key token of Secret s of release demo cannot be read: Error from server (Forbidden)",
        ),
        (
            KubeEndpoint(),
            {"secrets": [build_secret(TOKEN, "other")]},
            "--token: Secret s of release demo has no key token",
        ),
        (
            KubeEndpoint(),
            {"secrets": [{"metadata": {"name": "s"}}]},
            "--token: Secret s of release demo has no key token",
        ),
        (
            KubeEndpoint(),
            {"secrets": [{"metadata": {"name": "s"}, "data": {"token": "="}}]},
            "--token: key token of Secret s of release demo is no text",
        ),
        (
            KubeEndpoint(),
            {"secrets": [build_secret("two words")]},
            "--token: key token of Secret s of release demo: has other than printable ASCII",
        ),
        (
            KubeEndpoint(),
            {"context": "", "errors": {"get": "The connection to the server localhost:8080 was refused"}},
            "there is no current kube context, name one by --context",
        ),
        (
            KubeEndpoint(context="x"),
            {"errors": {"get": 'error: context "x" does not exist'}},
            '--kube: context "x" does not exist',
        ),
        (
            KubeEndpoint(),
            {"errors": {"get": 'Error from server (Forbidden): services is forbidden: User "u" cannot list'}},
            '--kube: Error from server (Forbidden): services is forbidden: User "u"',
        ),
    ],
)
async def test_what_the_user_can_put_right_is_a_mistake(
    kubectl: KubectlOnPath, endpoint: KubeEndpoint, settings: dict[str, Any], message: str
) -> None:
    """The error is one line that says what to do."""
    kubectl.set(**settings)
    with pytest.raises(UserError) as caught:
        await enter(endpoint)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_token_that_is_given_and_wrong_is_told_from_that_of_the_secret(
    kubectl: KubectlOnPath,
) -> None:
    """A variable of another coordinator is easily forgotten."""
    async with Client(KubeEndpoint(token="of-another-one")) as client:
        with pytest.raises(UserError) as caught:
            await client.fetch_runs()
    kubectl.set(secrets=[build_secret("an-old-one")])
    async with Client(KubeEndpoint()) as client:
        with pytest.raises(UserError, match=r"^the token is missing or wrong$"):
            await client.fetch_runs()
    assert str(caught.value) == (
        "the token is missing or wrong: "
        "--token (OKU_TOKEN) is set and was used instead of the Secret of release demo"
    )


async def test_services_for_workers_are_not_taken_for_releases(kubectl: KubectlOnPath) -> None:
    """They have the same labels, but no port of the API; blanks around the token of a Secret are removed."""
    clock = build_service("demo", {"name": "clock", "port": 8700, "protocol": "UDP"})
    files = build_service("demo", {"name": "files", "port": 8701})
    kubectl.set(services=[clock, files, build_service("demo")])
    async with Client(KubeEndpoint()) as client:
        assert await client.fetch_runs() == [{"run": "r1"}]
    kubectl.set(secrets=[build_secret(f" {TOKEN}\r\n")])
    async with Client(KubeEndpoint()) as client:
        assert await client.fetch_runs()


@pytest.mark.parametrize(
    "error",
    [
        "E1121 memcache.go:265] couldn't get list\nUnable to connect to the server: dial tcp: i/o timeout",
        "Unable to connect to the server: context deadline exceeded",
        "",
    ],
)
async def test_a_cluster_that_does_not_answer_is_out_of_reach(kubectl: KubectlOnPath, error: str) -> None:
    """The error has the last line of kubectl, if there is any."""
    kubectl.set(errors={"get": error})
    reason = error.splitlines()[-1] if error else "kubectl gave no reason"
    with pytest.raises(UnreachableError, match=f"^--kube: the cluster does not answer: {reason}$"):
        await enter(KubeEndpoint())


async def test_the_token_is_read_from_the_key_that_the_service_names(kubectl: KubectlOnPath) -> None:
    """A Secret of the user's own may have any name, and its key may have dots."""
    service = build_service("demo")
    service["metadata"]["annotations"]["oku/token-secret"] = "shop.load/api.token_1"
    secret = build_secret(TOKEN, "api.token_1") | {"metadata": {"name": "shop.load"}}
    kubectl.set(services=[service], secrets=[build_secret("other"), secret])
    async with Client(KubeEndpoint()) as client:
        assert await client.fetch_runs()
    assert [call for call in kubectl.calls if "secret" in call] == [
        "--request-timeout=10s get secret/shop.load --output json"
    ]


@pytest.mark.parametrize(
    "named", [None, "", "s", "s/", "/token", "s/a/b", "s,pods/token", "-o=x y/token", "S/token"]
)
async def test_a_service_that_names_no_key_of_a_secret_is_said(
    kubectl: KubectlOnPath, named: str | None
) -> None:
    """Releases of older charts have no annotation, and only names are handed to kubectl."""
    service = build_service("demo")
    service["metadata"]["annotations"] = {} if named is None else {"oku/token-secret": named}
    kubectl.set(services=[service])
    with pytest.raises(
        UserError, match=r"^--token: release demo names no Secret .*: upgrade it, or give --token$"
    ):
        await enter(KubeEndpoint())
    assert len(kubectl.calls) == 1


def test_the_service_of_the_chart_names_the_secret_of_the_token() -> None:
    """It is that of the chart or one of the user's, and no annotation of the user's takes its place."""
    theirs = {"oku/token-secret": "a/b", "other": "kept"}
    mine = {"token": {"existingSecret": "mine", "key": "t.1"}, "service": {"annotations": theirs}}
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "oku-token/token"),
        ({"coordinator": {"token": {"key": "unread"}}}, "oku-token/token"),
        ({"coordinator": mine, "extraAnnotations": theirs}, "mine/t.1"),
    ]
    for values, named in cases:
        service = find(render(values), "Service", "oku-coordinator")
        assert service["metadata"]["annotations"]["oku/token-secret"] == named, values
    assert service["metadata"]["annotations"]["other"] == "kept"


async def test_nobody_waits_for_a_kubectl_that_hangs(
    kubectl: KubectlOnPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may wait for a password that nobody types."""
    (kubectl.folder / "kubectl").write_text("#!/bin/sh\nexec sleep 10\n")
    monkeypatch.setattr(kubectl_module, "TIMEOUT_S", 0.1)
    with pytest.raises(UserError, match="no answer within 0 s"):
        await enter(KubeEndpoint())


def test_a_release_is_found_by_its_labels() -> None:
    """The chart sets these labels; of its Services, one has the port of the API, which is called http."""
    assert build_selector("") == COORDINATOR
    assert build_selector("a") == f"{COORDINATOR},app.kubernetes.io/instance=a"
    metrics, http = {"name": "metrics", "port": 9000}, {"name": "http", "port": 80}
    assert find_port(build_service("a", metrics, http)) == 80
    assert find_port(build_service("a", metrics)) == 0
    labels = dict(part.split("=") for part in build_selector("").split(","))
    services = find_kind(render(), "Service")
    found = [each for each in services if labels.items() <= each["metadata"]["labels"].items()]
    assert len(found) > 1
    assert sum(map(bool, map(find_port, found))) == 1


async def enter(endpoint: KubeEndpoint) -> None:
    """Open and close the way to the coordinator."""
    async with endpoint.open():
        pass
