"""Releases that take what is there already, by URL and Secret."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis import Redis
from tests.kit.kubernetes.cluster import Cluster
from tests.kit.kubernetes.existing import PASSWORD, build_loki, build_rabbitmq, build_valkey
from tests.kit.kubernetes.forward import Forward
from tests.kit.kubernetes.kubeconfig import build_environment
from tests.kit.kubernetes.notes import Terminal, list_commands
from tests.kit.kubernetes.pod_run import start_pod_run
from tests.kit.kubernetes.release import Release, wait_until_published
from tests.kit.loki.loki_account import assert_published
from tests.kit.loki.loki_queries import LokiQueries
from tests.kit.runs.account import assert_completed

from oku_cli.exit_code import ExitCode

_TENANT = "load"
_FLAGS = ("--workers", "2", "--servers", "1", "--delay", "exp:20ms")
_LASTING = ("--requests", "120k", "--range-size", "10000", "--concurrency", "80", *_FLAGS)
"""30 s of work, of which workers have leases for ten: much is left when the broker is back, however late."""
_END_S = 120.0


@pytest.fixture
def theirs(cluster: Cluster) -> Iterator[str]:
    """The namespace of what is there already."""
    with cluster.make_namespace() as namespace:
        yield namespace


@pytest.fixture
def ours(cluster: Cluster) -> Iterator[str]:
    """The namespace of the release."""
    with cluster.make_namespace() as namespace:
        yield namespace


def test_an_existing_valkey_and_an_existing_loki_are_used(
    cluster: Cluster, theirs: str, ours: str, tmp_path: Path
) -> None:
    """The release uses one database of the Valkey and one tenant of the Loki, and has neither of its own.

    Its token is theirs, too, and the commands of its notes do what they say.
    """
    valkey, loki = build_valkey(), build_loki()
    broker, loki_url = valkey.install(cluster, theirs), loki.install(cluster, theirs)
    make_secret(cluster, ours, "their-loki", username="oku", password="unread")
    external = {"url": loki_url, "tenant": _TENANT, "auth": "basic", "existingSecret": "their-loki"}
    make_secret(cluster, ours, "their.token", **{"api.token_1": secrets.token_hex(20)})
    token = {"existingSecret": "their.token", "key": "api.token_1"}
    values = {"loki.external": external, "coordinator.token": token}
    release = make_release(cluster, ours, broker, valkey.port, values)
    notes = release.install()
    assert cluster.fetch_all("statefulsets", ours) == []

    summary = release.run("--requests", "25k", *_FLAGS)
    assert_completed(summary)
    with Forward(cluster, theirs, valkey.name, valkey.port) as forward:
        port = urlsplit(forward.url).port or 0
        with Redis(port=port, password=PASSWORD) as client:
            assert client.info("keyspace").keys() == {"db3"}
    with release.open_api() as api:
        wait_until_published(api)
    with Forward(cluster, theirs, loki.name, loki.port) as forward:
        assert_published(LokiQueries(forward.url, _TENANT), summary)
    carry_out(release, notes, tmp_path)


def test_a_rabbitmq_that_loses_its_pod_and_its_data_loses_nothing(
    cluster: Cluster, theirs: str, ours: str, tmp_path: Path
) -> None:
    """Queues are declared again, and what the messages stood for is sent again."""
    rabbitmq = build_rabbitmq()
    broker = rabbitmq.install(cluster, theirs)
    release = make_release(cluster, ours, broker, rabbitmq.port, {})
    release.install()
    with start_pod_run(release, tmp_path, *_LASTING) as run:
        with run.hurting(may_resend=True):
            rabbitmq.replace(cluster, theirs)
        summary = run.wait_for_end(_END_S)
    assert_completed(summary)


def carry_out(release: Release, notes: str, folder: Path) -> None:
    """Run the commands of the notes as they are printed, those after an uninstallation as well.

    A million requests take too long here: the run is paused by Ctrl-C. `helm test` has a test of its own.
    """
    cluster, done = release.cluster, set()
    terminal = Terminal(build_environment(cluster, folder), folder)
    commands = [each for each in list_commands(notes) if not each.startswith("helm test ")]
    try:
        for command in commands:
            done.add(verb := find_verb(command))
            if verb == "oku run":
                assert terminal.run_until(command, " running ") == ExitCode.CUT_SHORT
            elif verb == "kubectl port-forward":
                terminal.start(command, "Forwarding from")
            elif verb == "kubectl delete":
                assert "paused" in terminal.run("oku runs"), "the variables lead to the API"
                terminal.close()
                release.uninstall()
                assert terminal.run(command).count("deleted") == 1
            else:
                terminal.run(command)
    finally:
        terminal.close()
    assert done == {
        "oku run", "oku runs", "kubectl rollout", "kubectl get", "kubectl port-forward",
        "export OKU_COORDINATOR", "export OKU_TOKEN", "kubectl delete",
    }  # fmt: skip


def find_verb(command: str) -> str:
    """The program of a command and what it is told to do."""
    program, *words = re.sub(r" -n \S+|=.*", "", command).split()
    return f"{program} {words[0]}"


def make_release(cluster: Cluster, namespace: str, broker: str, port: int, values: dict[str, Any]) -> Release:
    """A release with a broker of theirs, whose URL is in a Secret, and without a Valkey and a Loki."""
    make_secret(cluster, namespace, "their-broker", address=broker)
    without: dict[str, Any] = {
        "valkey.enabled": False,
        "broker.external": {"existingSecret": "their-broker", "key": "address", "port": port},
        "loki.enabled": False,
        "grafana.sidecar.datasource": False,
    }
    return Release(cluster, namespace, values=without | values)


def make_secret(cluster: Cluster, namespace: str, name: str, **texts: str) -> None:
    """A Secret with these keys."""
    metadata = {"name": name, "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts})
