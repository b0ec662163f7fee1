import base64
from pathlib import Path
from typing import Any

import pytest
from tests.unit.chart.cluster import serve_secrets
from tests.unit.chart.rendering import (
    Object,
    find,
    find_kind,
    find_pods,
    read_environment,
    refuse_with,
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


def test_a_token_or_key_of_the_cluster_that_is_easy_to_guess_is_refused(tmp_path: Path) -> None:
    """Its pods would end at once; the line names the Secret, and not what is in it."""
    mine = {"coordinator": {"token": {"existingSecret": "mine", "key": "t"}},
            "broker": {"messageKey": {"existingSecret": "mine", "key": "m"}}}  # fmt: skip
    good = "0123456789abcdef\n"
    cases: tuple[tuple[dict[str, Any], dict[str, dict[str, str]], str], ...] = (
        (mine, {"mine": {"t": "x", "m": good}}, "coordinator.token: the key t of {} mine has 1 of"),
        (mine, {"mine": {"t": good, "m": "k" * 15}}, "broker.messageKey: the key m of {} mine has 15 of"),
        (mine, {"mine": {"t": "abcd" * 8, "m": good}}, "{} mine has 4 of at least 5 different characters"),
        ({}, {"oku-token": {"token": "short"}}, "coordinator.token: the key token of {} oku-token has 5 of"),
        ({}, {"oku-message-key": {"message-key": "k"}}, "{} oku-message-key has 1 of at least 16 characters"),
    )
    for number, (values, secrets, sentence) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve_secrets(folder, secrets) as kubeconfig:
            said = refuse_with(kubeconfig, values)
        assert sentence.format("the Secret") in said
        assert "put there what `openssl rand -hex 32` prints" in said
    with serve_secrets(tmp_path, {"mine": {"t": good, "m": good}}) as kubeconfig:
        assert find_pods(render_with(kubeconfig, mine))
    with serve_secrets(tmp_path, {"mine": {"other": "x"}}) as kubeconfig:
        assert find_pods(render_with(kubeconfig, mine))


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


def test_volumes_of_the_ledger_and_of_loki_outlive_the_release() -> None:
    """The volume of messages does not."""
    claims = find_kind(render(), "PersistentVolumeClaim")
    kept = {
        each["metadata"]["name"]
        for each in claims
        if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    assert {each["metadata"]["name"] for each in claims} == {"oku-ledger", "oku-loki", "oku-valkey"}
    assert kept == {"oku-ledger", "oku-loki"}


def test_an_existing_claim_or_none_takes_the_place_of_a_volume() -> None:
    """The ledger is where the claim says, or gone with the pod."""
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
    assert data["emptyDir"] == {}
