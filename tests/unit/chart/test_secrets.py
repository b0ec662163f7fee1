import base64
from pathlib import Path
from typing import Any

import pytest
from tests.unit.chart.cluster import serve_secrets
from tests.unit.chart.rendering import (
    Object,
    evaluate,
    find,
    find_kind,
    find_pods,
    read_environment,
    render,
    render_with,
)

GENERATED = {
    "oku-token": ["token"],
    "oku-message-key": ["message-key"],
    "oku-valkey": ["coordinator-password", "workers-password"],
    "oku-grafana": ["password"],
}


def _read(objects: list[Object], name: str, key: str) -> str:
    return base64.b64decode(find(objects, "Secret", name)["data"][key]).decode()


def test_secrets_are_generated_each_with_a_value_of_its_own() -> None:
    """A value has letters and digits, which fit into a URL."""
    objects = render()
    values = {_read(objects, name, key) for name, keys in GENERATED.items() for key in keys}
    assert len(values) == sum(map(len, GENERATED.values()))
    assert all(len(value) == 40 and value.isalnum() for value in values)


def test_secrets_that_are_there_survive(tmp_path: Path) -> None:
    """An upgrade or a second installation keeps what the cluster has."""
    secrets = {name: {key: f"kept-{name}-{key}" for key in keys} for name, keys in GENERATED.items()}
    with serve_secrets(tmp_path, secrets) as kubeconfig:
        objects = render_with(kubeconfig)
    assert secrets == {
        name: {key: _read(objects, name, key) for key in keys} for name, keys in GENERATED.items()
    }


def test_a_release_with_secrets_of_its_own_reads_none(tmp_path: Path) -> None:
    """Helm fails where the caller may not read a Secret; the coordinator judges what is in it."""
    mine = {"existingSecret": "mine"}
    values = {"coordinator": {"token": mine}, "broker": {"messageKey": mine}}
    values |= {"valkey": {"password": mine}, "grafana": {"admin": mine}}
    with serve_secrets(tmp_path, {}, forbidden=True) as kubeconfig:
        assert find_pods(render_with(kubeconfig, values))
        with pytest.raises(AssertionError, match="forbidden"):
            render_with(kubeconfig)


def test_the_notes_say_what_a_token_of_ones_own_must_be_like(tmp_path: Path) -> None:
    """The generated one is."""
    template = 'notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}'
    said = "must have at least 16 characters, 5 of them different"
    mine = {"existingSecret": "mine"}
    for number, values in enumerate(({"coordinator": {"token": mine}}, {"broker": {"messageKey": mine}})):
        assert said in evaluate(template, values, tmp_path / str(number))["notes"]
    assert said not in evaluate(template, {}, tmp_path / "default")["notes"]


def test_the_notes_name_commands_that_work_with_any_values(tmp_path: Path) -> None:
    """A key may have dots, a port below 1024 is not everybody's, a long `helm test` needs more than 5 min."""
    template = 'notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}'
    token = {"existingSecret": "mine", "key": "api.token"}
    values = {
        "coordinator": {"token": token, "service": {"port": 80}},
        "grafana": {"admin": {"existingSecret": "theirs", "passwordKey": "admin.pw"}},
        "tests": {"timeoutSeconds": 600},
    }
    notes = evaluate(template, values, tmp_path / "theirs")["notes"]
    read = "kubectl -n load get secret {} -o go-template='{{{{index .data \"{}\" | base64decode}}}}'"
    assert f"export OKU_TOKEN=$({read.format('mine', 'api.token')})\n" in notes
    assert f"  {read.format('theirs', 'admin.pw')}\n" in notes
    assert "port-forward service/oku-coordinator 8700:80\n" in notes
    assert "export OKU_COORDINATOR=http://127.0.0.1:8700\n" in notes
    assert "helm test oku -n load --timeout 690s\n" in notes
    default = evaluate(template, {}, tmp_path / "default")["notes"]
    assert "helm test oku -n load\n" in default
    assert default.count(" --kube ") == default.count(" --kube --namespace load --release oku") == 2


def test_existing_secrets_are_used_and_none_is_made() -> None:
    """They are read under the keys that were set."""
    values = {
        "coordinator": {"token": {"existingSecret": "mine", "key": "t"}},
        "broker": {"messageKey": {"existingSecret": "mine", "key": "m"}},
        "valkey": {"password": {"existingSecret": "mine", "coordinatorKey": "c", "workersKey": "w"}},
        "grafana": {"admin": {"existingSecret": "mine", "userKey": "u", "passwordKey": "p"}},
    }
    objects = render(values)
    assert not find_kind(objects, "Secret")
    pods = find_pods(objects)
    taken = {
        f"{component} {name}": value["secretKeyRef"]["key"]
        for component in ("coordinator", "workers", "valkey", "grafana", "test")
        for name, value in read_environment(pods[component]).items()
        if isinstance(value, dict) and "secretKeyRef" in value
    }
    assert taken == {
        "coordinator OKU_TOKEN": "t", "test OKU_TOKEN": "t", "coordinator OKU_BROKER_PASSWORD": "c",
        "workers OKU_BROKER_PASSWORD": "w", "workers OKU_MESSAGE_KEY": "m",
        "valkey COORDINATOR_PASSWORD": "c",
        "valkey WORKERS_PASSWORD": "w",
        "grafana GF_SECURITY_ADMIN_USER": "u", "grafana GF_SECURITY_ADMIN_PASSWORD": "p",
    }  # fmt: skip


@pytest.mark.parametrize(("values", "secret", "key"), [
    ({}, "oku-message-key", "message-key"),
    ({"broker": {"messageKey": {"existingSecret": "mine", "key": "m"}}}, "mine", "m"),
])  # fmt: skip
def test_coordinator_and_workers_alone_have_the_key_of_messages(
    values: dict[str, Any], secret: str, key: str
) -> None:
    """Whoever takes over the broker can sign nothing.

    The coordinator has it as a file, a worker in its environment, which user code in its pod cannot read.
    """
    files, variables = {}, {}
    for component, pod in find_pods(render(values)).items():
        for volume in pod["spec"].get("volumes", []):
            if volume.get("secret", {}).get("secretName") == secret:
                files[component] = volume["secret"]["items"]
        for name, value in read_environment(pod).items():
            if isinstance(value, dict) and value.get("secretKeyRef", {}).get("name") == secret:
                variables[component, name] = value["secretKeyRef"]["key"]
    assert files == {"coordinator": [{"key": key, "path": "message-key"}]}
    assert variables == {("workers", "OKU_MESSAGE_KEY"): key}
    environment = read_environment(find_pods(render(values))["coordinator"])
    assert environment["OKU_MESSAGE_KEY_FILE"] == "/run/oku/message-key"


def test_volumes_outlive_the_release_unless_told_otherwise() -> None:
    """The volume of messages does not."""
    claims = find_kind(render(), "PersistentVolumeClaim")
    kept = {
        each["metadata"]["name"]
        for each in claims
        if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    assert {each["metadata"]["name"] for each in claims} == {"oku-ledger", "oku-loki", "oku-valkey"}
    assert kept == {"oku-ledger", "oku-loki"}
    # An existing claim or none takes the place of a volume.
    mine = {
        "coordinator": {"persistence": {"existingClaim": "mine"}},
        "loki": {"persistence": {"enabled": False}},
    }
    objects = render(mine)
    assert {each["metadata"]["name"] for each in find_kind(objects, "PersistentVolumeClaim")} == {
        "oku-valkey"
    }
    pods = find_pods(objects)
    ledger = {volume["name"]: volume for volume in pods["coordinator"]["spec"]["volumes"]}["ledger"]
    assert ledger["persistentVolumeClaim"] == {"claimName": "mine"}
    data = {volume["name"]: volume for volume in pods["loki"]["spec"]["volumes"]}["data"]
    assert data["emptyDir"] == {"sizeLimit": "10Gi"}
