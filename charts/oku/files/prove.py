"""What `helm test` does: a run over several workers, one of which is killed in the middle, and its account.

In: address and token of the coordinator, as `oku run` takes them, where the workers are, how large it is, and
which share of the requests has to be answered as it should.
Out: one line, and exit code 0 if every request is accounted once, and enough of them are answered.
"""

# ruff: noqa: INP001  # a script by itself, mounted into a pod
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

_SUMMARY = Path("/tmp/summary.json")  # noqa: S108  # a folder of this pod alone
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
KUBERNETES = "https://kubernetes.default.svc"
_LOOK_EVERY_S = 0.2


def main() -> int:
    """Prove it, and give back the rights that it took; the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was told to end"))
    try:
        return prove()
    finally:
        give_rights_back()


def prove() -> int:
    """Prove it; the exit code."""
    deadline = time.monotonic() + float(os.environ["TEST_TIMEOUT_S"])
    name = f"helm-test-{int(time.time())}"
    run = subprocess.Popen(build_command(name))  # noqa: S603  # our own command
    try:
        killed, servers = kill_worker(run, name, deadline)
    except OSError as error:
        run.kill()
        run.wait()
        return fail(f"no worker can be killed: {error}")
    try:
        code = run.wait(max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        waits_for = fetch_notices(name)
        run.kill()
        run.wait()
        return fail(f"the run did not end within {os.environ['TEST_TIMEOUT_S']} s{waits_for}")
    if code != 0:
        return fail(f"oku run ended with exit code {code}")
    summary = json.loads(_SUMMARY.read_text())
    wrong = find_wrong(summary, float(os.environ["TEST_LEAST_OK"])) or find_unproved(summary, killed, servers)
    if wrong:
        return fail(wrong)
    sys.stdout.write(
        f"{summary['accounted']} of {summary['requests']} requests are accounted, "
        f"{killed} was killed on the way, at most {summary['resent_at_most']} were sent twice\n"
    )
    return 0


def build_command(name: str) -> list[str]:
    """The run, as a user would type it."""
    command = ["oku", "run", "--name", name, "--requests", os.environ["TEST_REQUESTS"]]
    if os.environ["TEST_WORKERS"] != "0":
        command += ["--workers", os.environ["TEST_WORKERS"]]
    return [*command, "--quiet", "--summary-json", str(_SUMMARY)]


def find_wrong(summary: dict[str, Any], least_ok: float) -> str:
    """What is wrong with an account of which at least this share should be ok; empty if nothing."""
    if summary["state"] != "completed":
        return f"the run is {summary['state']}: {summary['reason']}"
    if summary["accounted"] != summary["requests"]:
        return f"{summary['accounted']} of {summary['requests']} requests are accounted"
    if sum(summary["outcomes"].values()) != summary["accounted"]:
        return f"the outcomes do not sum to {summary['accounted']}: {summary['outcomes']}"
    if summary["outcomes"]["ok"] < max(1, least_ok * summary["accounted"]):
        return f"{summary['outcomes']['ok']} of {summary['accounted']} requests are ok: {summary['outcomes']}"
    return ""


def find_unproved(summary: dict[str, Any], killed: str | None, servers: frozenset[str]) -> str:
    """What an account that balances does not show; empty if nothing."""
    if killed is None:
        return "the run was over before a worker could be killed: raise tests.requests"
    if summary["servers"] is None and not has_lost_servers(servers):
        return "what the delay servers served is not known, though none of them went"
    return ""


def kill_worker(
    run: "subprocess.Popen[bytes]", name: str, deadline: float
) -> tuple[str | None, frozenset[str]]:
    """Kill a worker as soon as some requests are accounted.

    Its name, None if the run was over before, and the delay servers of that moment; `OSError` if there is no
    use in trying again.
    """
    while run.poll() is None and time.monotonic() < deadline:
        try:
            if has_begun(name):
                servers = fetch_servers()
                for pod in fetch_workers():
                    delete_pod(pod)
                    return pod, servers
        except OSError as error:
            if is_final(error):
                raise
            # An API may be away for a moment, a pod be gone since it was listed.
            sys.stderr.write(f"trying again: {error}\n")
        time.sleep(_LOOK_EVERY_S)
    return None, frozenset()


def is_final(error: OSError) -> bool:
    """Whether what was asked would fail again: no right to it, or nobody that can be trusted."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in {401, 403}
    reason = getattr(error, "reason", error)
    # A connection that ends in the middle of it may be that of an API server that is started anew.
    return isinstance(reason, ssl.SSLError) and not isinstance(reason, ssl.SSLEOFError)


def has_begun(name: str) -> bool:
    """Whether requests of the run are accounted."""
    runs = ask_coordinator("/api/runs")
    return any(run["name"] == name and run["state"] == "running" and run["accounted"] > 0 for run in runs)


def fetch_notices(name: str) -> str:
    """What the run waits for, as its coordinator says, behind a colon each; empty if nothing or unknown."""
    try:
        for run in ask_coordinator("/api/runs"):
            if run["name"] == name:
                summary = ask_coordinator(f"/api/runs/{run['run']}")
                return "".join(f": {line}" for line in (f"it is {summary['state']}", *summary["notices"]))
    except (OSError, ValueError) as error:
        return f": the coordinator does not answer: {error}"
    return ""


def fetch_workers() -> list[str]:
    """The names of the worker pods that run."""
    pods = fetch_pods(os.environ["TEST_WORKER_LABELS"])
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def fetch_servers() -> frozenset[str]:
    """The delay servers that run: the name of each pod, and how often its container was started again."""
    pods = fetch_pods(os.environ["TEST_SERVER_LABELS"])
    return frozenset(
        f"{pod['metadata']['name']} {container['restartCount']}"
        for pod in pods
        for container in pod["status"].get("containerStatuses", [])
    )


def has_lost_servers(before: frozenset[str]) -> bool:
    """Whether one of these servers is gone or was started again, or nobody can say."""
    try:
        return not before <= fetch_servers()
    except OSError as error:
        sys.stderr.write(f"the delay servers cannot be looked at: {error}\n")
        return True


def fetch_pods(labels: str) -> list[dict[str, Any]]:
    """The pods with these labels that run."""
    query = urllib.parse.urlencode({"labelSelector": labels, "fieldSelector": "status.phase=Running"})
    pods: list[dict[str, Any]] = ask(f"{build_pods_url()}?{query}", read_token())["items"]
    return pods


def delete_pod(name: str) -> None:
    """Delete a pod that has a second to end."""
    ask(f"{build_pods_url()}/{name}?gracePeriodSeconds=1", read_token(), method="DELETE")


def build_pods_url() -> str:
    """Where the pods of this namespace are."""
    return f"{KUBERNETES}/api/v1/namespaces/{os.environ['TEST_NAMESPACE']}/pods"


def give_rights_back() -> None:
    """Remove what lets this pod list and delete pods: Helm does not, when it is interrupted."""
    url = f"{KUBERNETES}/apis/rbac.authorization.k8s.io/v1/namespaces/{os.environ['TEST_NAMESPACE']}"
    try:
        ask(f"{url}/rolebindings/{os.environ['TEST_ROLE_BINDING']}", read_token(), method="DELETE")
    except OSError as error:
        sys.stderr.write(f"the rights of this test stay until the next one: {error}\n")


def ask_coordinator(path: str) -> Any:
    """What the API of the coordinator answers."""
    return ask(f"{os.environ['OKU_COORDINATOR']}{path}", os.environ["OKU_TOKEN"])


def read_token() -> str:
    """The token of this pod's service account."""
    return (ACCOUNT / "token").read_text()


def ask(url: str, token: str, method: str = "GET") -> Any:
    """The JSON that a call answers."""
    context = build_context(ACCOUNT / "ca.crt") if url.startswith("https:") else None
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=20, context=context) as response:  # noqa: S310  # ours
        return json.load(response)


def build_context(ca: Path) -> ssl.SSLContext:
    """Trust in whom this certificate speaks for."""
    context = ssl.create_default_context(cafile=str(ca))
    # Clusters make their own certificates, many of them without what Python 3.13 asks for beside a chain
    # that can be trusted (RFC 5280, an authority key identifier).
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def fail(reason: str) -> int:
    """Say why; the exit code."""
    sys.stderr.write(f"{reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
