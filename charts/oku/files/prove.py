"""What `helm test` does: a run over several workers, one of which is killed in the middle, and its account.

In: address and token of the coordinator, as `oku run` takes them, where the workers are, how large it is.
Out: one line, and exit code 0 if every request is accounted once.
"""

# ruff: noqa: INP001  # a script by itself, mounted into a pod
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

_SUMMARY = Path("/tmp/summary.json")  # noqa: S108  # a folder of this pod alone
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KUBERNETES = "https://kubernetes.default.svc"
_LOOK_EVERY_S = 0.2


def main() -> int:
    """Prove it; the exit code."""
    deadline = time.monotonic() + float(os.environ["TEST_TIMEOUT_S"])
    name = f"helm-test-{int(time.time())}"
    run = subprocess.Popen(build_command(name))  # noqa: S603  # our own command
    killed = kill_worker(run, name, deadline)
    try:
        code = run.wait(max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        run.kill()
        return fail(f"the run did not end within {os.environ['TEST_TIMEOUT_S']} s")
    if code != 0:
        return fail(f"oku run ended with exit code {code}")
    summary = json.loads(_SUMMARY.read_text())
    wrong = find_wrong(summary)
    if wrong:
        return fail(wrong)
    if killed is None:
        return fail("the run was over before a worker could be killed: raise tests.requests")
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
    return [*command, "--quiet", "--json", str(_SUMMARY)]


def find_wrong(summary: dict[str, Any]) -> str:
    """What is wrong with an account; empty if nothing."""
    if summary["state"] != "completed":
        return f"the run is {summary['state']}: {summary['reason']}"
    if summary["accounted"] != summary["requests"]:
        return f"{summary['accounted']} of {summary['requests']} requests are accounted"
    if sum(summary["outcomes"].values()) != summary["accounted"]:
        return f"the outcomes do not sum to {summary['accounted']}: {summary['outcomes']}"
    return ""


def kill_worker(run: "subprocess.Popen[bytes]", name: str, deadline: float) -> str | None:
    """Kill a worker as soon as some requests are accounted; its name, None if the run was over before."""
    while run.poll() is None and time.monotonic() < deadline:
        try:
            if has_begun(name):
                for pod in fetch_workers():
                    delete_pod(pod)
                    return pod
        except OSError as error:
            # An API may be away for a moment, a pod be gone since it was listed.
            sys.stderr.write(f"trying again: {error}\n")
        time.sleep(_LOOK_EVERY_S)
    return None


def has_begun(name: str) -> bool:
    """Whether requests of the run are accounted."""
    runs = ask(f"{os.environ['OKU_COORDINATOR']}/api/runs", os.environ["OKU_TOKEN"])
    return any(run["name"] == name and run["state"] == "running" and run["accounted"] > 0 for run in runs)


def fetch_workers() -> list[str]:
    """The names of the worker pods that run."""
    query = urllib.parse.urlencode(
        {"labelSelector": os.environ["TEST_WORKER_LABELS"], "fieldSelector": "status.phase=Running"}
    )
    pods = ask(f"{build_pods_url()}?{query}", read_token())["items"]
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def delete_pod(name: str) -> None:
    """Delete a pod that has a second to end."""
    ask(f"{build_pods_url()}/{name}?gracePeriodSeconds=1", read_token(), method="DELETE")


def build_pods_url() -> str:
    """Where the pods of this namespace are."""
    return f"{_KUBERNETES}/api/v1/namespaces/{os.environ['TEST_NAMESPACE']}/pods"


def read_token() -> str:
    """The token of this pod's service account."""
    return (_ACCOUNT / "token").read_text()


def ask(url: str, token: str, method: str = "GET") -> Any:
    """The JSON that a call answers."""
    context = (
        ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt")) if url.startswith("https:") else None
    )
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=20, context=context) as response:  # noqa: S310  # ours
        return json.load(response)


def fail(reason: str) -> int:
    """Say why; the exit code."""
    sys.stderr.write(f"{reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
