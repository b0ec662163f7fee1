"""The image by itself, as `docker run` starts it: no chart, no root, a read-only root file system."""

import re
from collections.abc import Iterator

import pytest
from tests.kit.kubernetes.cluster import Cluster, Object, build_container, build_pod
from tests.kit.runs.local_run import wait_until

from oku_cli.exit_code import ExitCode

_DATA = "data"
_OWN_USER, _ANY_USER = 10001, 1_000_710_000
"""The user of the image, and one as OpenShift picks it: without a name, in the group 0."""
_RUN = ("run", "--requests", "12000", "--concurrency", "100", "--delay", "100ms")
"""Twelve seconds of work."""
_PATIENCE_S = 120.0
_LOOK_S = 0.3


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the restricted standard, without a release."""
    with cluster.make_namespace() as namespace:
        yield namespace


def build_oku(name: str, *arguments: str, user: int = _OWN_USER, has_volume: bool = True) -> Object:
    """A container that is given arguments and no command; what it writes lies on /data, unless nowhere."""
    container = build_container(name, (), user=user)
    del container["command"]
    container["args"] = list(arguments)
    container["securityContext"]["runAsGroup"] = 0 if user == _ANY_USER else user
    return container | {"volumeMounts": [{"name": _DATA, "mountPath": "/data"}] if has_volume else []}


def start(cluster: Cluster, namespace: str, *containers: Object) -> str:
    """Make a pod with an empty volume for its containers; its name, which is that of the first."""
    volumes = [{"name": _DATA, "emptyDir": {}}]
    name = str(containers[0]["name"])
    cluster.apply(build_pod(name, namespace, containers, volumes=volumes))
    return name


def wait_for_exit(cluster: Cluster, namespace: str, pod: str) -> int:
    """Wait until the first container of a pod has ended; its exit code."""
    ended: list[int] = []

    def has_ended() -> bool:
        if "terminated" in (state := cluster.fetch_state(pod, namespace)):
            ended.append(state["terminated"]["exitCode"])
        return bool(ended)

    wait_until(has_ended, _PATIENCE_S, f"{pod} has ended", _LOOK_S)
    return ended[0]


def read(cluster: Cluster, namespace: str, pod: str) -> str:
    """What the first container of a pod has written."""
    return cluster.call("logs", pod, "-n", namespace, "-c", pod)


def pause(cluster: Cluster, namespace: str, pod: str) -> str:
    """End the first process of a pod as `docker stop` does, in the middle of its run; what it wrote."""
    cluster.wait_for_line(" running ", pod, namespace)
    cluster.call("exec", pod, "-n", namespace, "-c", pod, "--", "sh", "-c", "kill -TERM 1")
    assert wait_for_exit(cluster, namespace, pod) == ExitCode.CUT_SHORT
    return read(cluster, namespace, pod)


@pytest.mark.parametrize("user", [_OWN_USER, _ANY_USER])
def test_a_run_needs_nothing_but_the_image_and_a_folder(cluster: Cluster, namespace: str, user: int) -> None:
    """The broker and the delay servers are in it, and the report is in the folder, whoever the user is."""
    pod = start(cluster, namespace, build_oku(f"own-{user}", "run", "--requests", "1000", user=user))
    assert wait_for_exit(cluster, namespace, pod) == ExitCode.COMPLETED
    said = read(cluster, namespace, pod)
    assert "1,000 of 1,000 accounted" in said
    assert "report      .oku/reports/" in said


def test_a_delay_server_and_a_run_against_it_are_the_same_image(cluster: Cluster, namespace: str) -> None:
    """The server listens on all addresses without being told, and writes nowhere."""
    server = start(cluster, namespace, build_oku("server", "server", has_volume=False))
    cluster.wait_for_line("listening", server, namespace)
    address = cluster.fetch("pod", server, namespace)["status"]["podIP"]
    url = f"http://{address}:8080/{{i}}"
    pod = start(cluster, namespace, build_oku("client", "run", "--url", url, "--requests", "1000"))
    assert wait_for_exit(cluster, namespace, pod) == ExitCode.COMPLETED
    said = read(cluster, namespace, pod)
    assert "1,000 of 1,000 accounted" in said
    assert re.search(r"statuses +200 1,000", said)


def test_a_stopped_run_is_paused_and_another_container_with_its_volume_resumes_it(
    cluster: Cluster, namespace: str
) -> None:
    """The first process of a container takes SIGTERM, and its hint is true."""
    other = build_oku("other") | {"command": ["sleep", "600"]}
    pod = start(cluster, namespace, build_oku("stopped", *_RUN), other)
    said = pause(cluster, namespace, pod)
    [command] = re.findall(r"resume it with: (.+) \(same volume at /data\)", said)
    done = cluster.call("exec", pod, "-n", namespace, "-c", "other", "--", *command.split())
    assert "12,000 of 12,000 accounted" in done


def test_a_run_that_goes_with_its_container_is_not_said_to_be_resumable(
    cluster: Cluster, namespace: str
) -> None:
    """Without a volume nobody finds its ledger again."""
    container = build_oku("lost", *_RUN, has_volume=False)
    container["securityContext"]["readOnlyRootFilesystem"] = False
    said = pause(cluster, namespace, start(cluster, namespace, container))
    assert "its data goes with this container" in said
    assert "resume it" not in said


def test_a_folder_that_cannot_be_written_is_named(cluster: Cluster, namespace: str) -> None:
    """One line says so, and the exit code that it is the user's to mend."""
    pod = start(cluster, namespace, build_oku("closed", "run", "--requests", "1000", has_volume=False))
    assert wait_for_exit(cluster, namespace, pod) == ExitCode.WRONG_INPUT
    assert read(cluster, namespace, pod) == "oku: /data/.oku: Read-only file system\n"


def test_the_extension_of_the_httptools_engine_is_in_it(cluster: Cluster, namespace: str) -> None:
    """The build has a C compiler, whatever the base is."""
    container = build_oku("extension", has_volume=False)
    container["command"] = ["python", "-I", "-c", "import oku_workers.speedups._speedups"]
    assert wait_for_exit(cluster, namespace, start(cluster, namespace, container)) == ExitCode.COMPLETED
