import importlib
from typing import Any

import click
import pytest
from tests.unit.chart.rendering import find_pods, read_environment, render

from oku_cli.options.daemon.broker_options import VARIABLE as MESSAGE_KEY
from oku_core.spec.values.delay import parse_delay


def _list_variables(name: str) -> set[str]:
    command: click.Command = importlib.import_module(f"oku_cli.commands.{name}").command
    variables = [option.envvar for option in command.params if isinstance(option, click.Option)]
    # The key of messages is in no flag, which everybody could see.
    return {variable for variable in variables if isinstance(variable, str)} | {MESSAGE_KEY}


@pytest.mark.parametrize(
    ("component", "command"), [("coordinator", "coordinator"), ("workers", "worker"), ("servers", "server")]
)
@pytest.mark.parametrize("auth", ["none", "basic", "bearer"])
def test_every_variable_is_one_that_the_command_reads(component: str, command: str, auth: str) -> None:
    """No value of the chart sets a variable that the command does not read."""
    loki = {"enabled": False, "external": {"url": "http://loki", "tenant": "t", "auth": auth,
                                           "existingSecret": "s"}}  # fmt: skip
    environment = read_environment(find_pods(render({"loki": loki}))[component])
    names = {name for name in environment if name.startswith("OKU_")} - {"OKU_BROKER_PASSWORD"}
    assert names
    assert names <= _list_variables(command)


def test_the_coordinator_is_told_all_it_needs() -> None:
    """Its environment says where the broker, Loki and the servers are, and what it scales."""
    environment = read_environment(find_pods(render(release="night", namespace="there"))["coordinator"])
    texts = {name: value for name, value in environment.items() if isinstance(value, str)}
    assert texts == {
        "OKU_MESSAGE_KEY_FILE": "/run/oku/message-key",
        "OKU_BROKER_URL": "redis://coordinator:$(OKU_BROKER_PASSWORD)@night-valkey:6379/0",
        "OKU_DATA_DIR": "/data",
        "OKU_TRUST_DATA_DIR": "true",
        "OKU_HOST": "*",
        "OKU_PORT": "8700",
        "OKU_CLOCK_ADDRESS": "night-clock",
        "OKU_FILES_PORT": "8701",
        "OKU_FILES_ADDRESS": "night-files",
        "OKU_MAX_FILE_BYTES": "1GB",
        "OKU_MAX_FILES_BYTES": "2GB",
        "OKU_MAX_RUN_FILES": "100",
        "OKU_WORKER_TIMEOUT": "10s",
        "OKU_KEEP_KEYS": "30d",
        "OKU_SERVER_URLS": "http://night-servers:8080",
        "OKU_LOKI_URL": "http://night-loki:3100",
        "OKU_LOKI_OUTBOX": "256MB",
        "OKU_KUBE_WORKERS": "night-workers",
        "OKU_KUBE_DEFAULT_WORKERS": "2",
        "OKU_KUBE_MAX_WORKERS": "20",
        "OKU_KUBE_SERVERS": "night-servers",
        "OKU_KUBE_SERVERS_MIN": "0",
        "OKU_KUBE_SERVERS_MAX": "10",
        "OKU_KUBE_IDLE": "60s",
        "OKU_LOG_FORMAT": "json",
        "OKU_LOG_LEVEL": "info",
    }
    # A variable is only put into one that comes after it.
    assert list(environment).index("OKU_BROKER_PASSWORD") < list(environment).index("OKU_BROKER_URL")
    assert environment["OKU_TOKEN"] == {"secretKeyRef": {"name": "night-token", "key": "token"}}
    assert environment["OKU_KUBE_NAMESPACE"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}


def test_the_coordinator_is_told_how_long_runs_and_keys_are_kept() -> None:
    """Runs are kept for ever without a value, and keys are always forgotten some time."""
    given = {"OKU_KEEP_RUNS": "0", "OKU_KEEP_FOR": "2h", "OKU_KEEP_KEYS": "7d"}
    values = {"coordinator": {"keepRuns": 0, "keepFor": "2h", "keepKeys": "7d"}}
    for kept, expected in ((values, given), ({}, {"OKU_KEEP_KEYS": "30d"})):
        environment = read_environment(find_pods(render(kept))["coordinator"])
        assert {name: environment[name] for name in given if name in environment} == expected


def test_a_worker_has_the_name_of_its_pod() -> None:
    """No two workers have the same name."""
    environment = read_environment(find_pods(render())["workers"])
    assert environment["OKU_WORKER_NAME"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_a_broker_of_ones_own_takes_the_place_of_valkey() -> None:
    """The broker is named by a Secret with its URL, or by a URL without a password."""
    secret = {
        "valkey": {"enabled": False},
        "broker": {"external": {"existingSecret": "mine", "key": "where", "port": 6379}},
    }
    url = {"valkey": {"enabled": False}, "broker": {"external": {"url": "amqp://rabbit.mq.svc"}}}
    for values, expected in (
        (secret, {"secretKeyRef": {"name": "mine", "key": "where"}}),
        (url, "amqp://rabbit.mq.svc"),
    ):
        pods = find_pods(render(values))
        assert "valkey" not in pods
        for component in ("coordinator", "workers"):
            environment = read_environment(pods[component])
            assert environment["OKU_BROKER_URL"] == expected
            assert "OKU_BROKER_PASSWORD" not in environment


def test_certificates_of_ones_own_are_mounted_and_named() -> None:
    """A variable names Loki's certificate to the coordinator; the URL of a broker names its file itself."""
    certs = {"extraVolumes": [{"name": "certs", "secret": {"secretName": "ca"}}],
             "extraVolumeMounts": [{"name": "certs", "mountPath": "/certs", "readOnly": True}]}  # fmt: skip
    ca = {"name": "OKU_LOKI_CA", "value": "/certs/ca.pem"}
    pods = find_pods(render({"pods": certs, "coordinator": {"pod": {"extraEnv": [ca]}}}))
    assert read_environment(pods["coordinator"])["OKU_LOKI_CA"] == "/certs/ca.pem"
    assert "OKU_LOKI_CA" in _list_variables("coordinator")
    for component in ("coordinator", "workers"):
        (container,) = pods[component]["spec"]["containers"]
        assert {"name": "certs", "mountPath": "/certs", "readOnly": True} in container["volumeMounts"]


def test_the_folders_of_files_are_told_to_coordinator_and_workers() -> None:
    """The coordinator refuses all other folders, the workers read these; without a name there is none."""
    pods = find_pods(render({"workers": {"filesDirs": ["/certs", "/more"]}}))
    for component, command in (("coordinator", "coordinator"), ("workers", "worker")):
        assert read_environment(pods[component])["OKU_FILES_DIR"] == "/certs:/more"
        assert "OKU_FILES_DIR" in _list_variables(command)
        assert "OKU_FILES_DIR" not in read_environment(find_pods(render())[component])
    # The secrets of a target are told to workers alone.
    pods = find_pods(render({"workers": {"allowEnv": ["A", "B"], "secretsDir": "/secrets"}}))
    told = {"OKU_ALLOW_ENV": "A B", "OKU_SECRETS_DIR": "/secrets"}
    assert told.items() <= read_environment(pods["workers"]).items()
    assert told.keys() <= _list_variables("worker")
    assert not told.keys() & read_environment(pods["coordinator"]).keys()
    assert not told.keys() & read_environment(find_pods(render())["workers"]).keys()


def test_the_delay_server_takes_its_flags() -> None:
    """The flags are those that `oku server` reads."""
    values = {"servers": {"delay": "lognormal:40ms,0.5", "seed": 7, "processes": 2,
                          "extraArgs": ["--error-rate", "0.01"]}}  # fmt: skip
    (container,) = find_pods(render(values))["servers"]["spec"]["containers"]
    command: click.Command = importlib.import_module("oku_cli.commands.server").command
    name, *flags = container["args"]
    assert name == command.name
    parsed, rest, _ = command.make_parser(click.Context(command)).parse_args(flags)
    given: dict[str, Any] = dict(parsed)
    assert not rest
    assert parse_delay(given["delay"]) == "lognormal:40ms,0.5"
    assert (given["host"], given["seed"], given["processes"]) == ("*", "7", "2")
    assert given["counts_dir"] in {mount["mountPath"] for mount in container["volumeMounts"]}
