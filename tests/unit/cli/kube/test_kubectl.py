import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kit.runs.local_run import is_alive
from tests.unit.cli.kubectl_on_path import wait_until

from oku_cli.kube.kubectl import Kubectl, find_reason, is_mistake
from oku_cli.kube.tunnel import open_tunnel

LOGGED = (
    'E1121 20:41:21.639483   24341 memcache.go:265] "Unhandled Error" err="couldn\'t get current server API '
    'group list: Get \\"https://10.0.0.1:6443/api?timeout=10s\\": dial tcp: connect: connection refused"'
)
LOGGED_BLOCK = (
    'E1121 20:45:13.482574   32078 memcache.go:265] "Unhandled Error" err=<\n'
    '\tcouldn\'t get current server API group list: Get "https://10.0.0.1:6443/api?timeout=10s": getting '
    "credentials: exec: executable no-such-plugin not found\n\t\n"
    "\tTo learn more about this feature, consult the documentation available at:\n >"
)
MISTAKES = [
    'error: context "x" does not exist',
    "Error in configuration: context was not found for specified context: x",
    "Error in configuration: \n* unable to read client-cert /c.crt for u due to open /c.crt: no such file",
    "error: unable to read certificate-authority /no/ca.crt for k due to open /no/ca.crt: no such file",
    "error: unable to load root certificates: unable to parse bytes as PEM block",
    'error: error loading config file "config": yaml: line 1: did not find expected node content',
    "error: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER",
    "error: You must be logged in to the server (Unauthorized)",
    "error: You must be logged in to the server (the server has asked for the client to provide credentials)",
    'Error from server (Forbidden): services is forbidden: User "u" cannot list resource "services"',
    "Error from server (Forbidden): unknown",
    'error: The gcp auth plugin has been removed.\nPlease use the "gke-gcloud-auth-plugin" instead.',
    "Unable to connect to the server: getting credentials: exec: executable aws not found\n\nIt looks",
    "invalid namespace \"A b/\": [may not contain '/']",
    'Error from server (NotFound): secrets "mine" not found',
    'Error from server (BadRequest): Unable to find "/v1, Resource=services" that match label selector',
]
PASSING = [
    "Unable to connect to the server: context deadline exceeded",
    "Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded)",
    "Unable to connect to the server: dial tcp: lookup k8s.example.com on 10.0.0.53:53: no such host",
    "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout",
    "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?",
    'Error from server (InternalError): an error on the server ("context deadline exceeded") has prevented',
    "Error from server (ServiceUnavailable): the server is currently unable to handle the request",
    "Error from server (TooManyRequests): too many requests, please try again later",
    "Error from server (Timeout): request did not complete within the allotted timeout",
    "Error from server: etcdserver: leader changed",
    "Unable to connect to the server: getting credentials: exec: executable aws failed with exit code 255",
    "no answer within 20 s",
]


def test_mistakes_are_told_from_outages_by_the_words_of_kubectl() -> None:
    """The samples are those of version 1.34; a word such as `context` alone does not make a mistake."""
    for error in MISTAKES:
        assert is_mistake(find_reason(error))
        assert is_mistake(find_reason(f"{LOGGED}\n{error}"))
    for error in PASSING:
        assert not is_mistake(find_reason(error))
        assert not is_mistake(find_reason(f"{LOGGED_BLOCK}\n{error}"))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (f'{LOGGED}\n{LOGGED}\nerror: context "x" does not exist\n', 'context "x" does not exist'),
        (f"{LOGGED_BLOCK}\nUnable to connect to the server: EOF\n", "Unable to connect to the server: EOF"),
        ("Error in configuration: \n* unable to read a\n* or b\n",
         "Error in configuration: * unable to read a * or b"),
        ('E1121 20:45:13.482574   32078 portforward.go:424] "Unhandled Error" err="lost"\n',
         '"Unhandled Error" err="lost"'),
        ("\n", "kubectl gave no reason"),
    ],
)  # fmt: skip
def test_the_reason_is_one_line_without_what_kubectl_logs(error: str, reason: str) -> None:
    """The log has timestamps and process ids, and repeats the reason five times."""
    assert find_reason(error) == reason


@pytest.fixture
def read_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Reads the environment of a `kubectl`, which lists nothing and forwards a port."""
    program = tmp_path / "kubectl"
    program.write_text(
        f"#!/bin/sh\nenv > {tmp_path}/seen.part; mv {tmp_path}/seen.part {tmp_path}/seen\n"
        'case "$*" in\n*port-forward*) echo "Forwarding from 127.0.0.1:9 -> 8700"; exec sleep 60;;\n'
        "*) echo '{\"items\": []}';;\nesac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("OKU_TOKEN", "a-token")
    monkeypatch.setenv("KUBECONFIG", "a-config")
    return (tmp_path / "seen").read_text


async def test_kubectl_gets_the_environment_without_what_is_of_oku(
    read_environment: Callable[[], str],
) -> None:
    """For a call and for a tunnel: it has no use for the token of an API."""
    await Kubectl("", "").fetch("service", "a=b")
    assert "KUBECONFIG=a-config" in read_environment()
    assert "OKU_TOKEN" not in read_environment()

    async def explain() -> str:
        return ""

    async with open_tunnel(Kubectl("", "").build_command("port-forward"), explain):
        assert "KUBECONFIG=a-config" in read_environment()
        assert "OKU_TOKEN" not in read_environment()


async def test_a_kubectl_that_nobody_waits_for_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command may end in the middle of a call."""
    program, pid = tmp_path / "kubectl", tmp_path / "pid"
    program.write_text(f"#!/bin/sh\necho $$ > {pid}.part; mv {pid}.part {pid}\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    asking = asyncio.create_task(Kubectl("", "").fetch("pods", "a=b"))
    await wait_until(pid.exists)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not is_alive(int(pid.read_text()))
