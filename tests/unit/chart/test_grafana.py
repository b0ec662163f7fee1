import configparser
import json
import re
from typing import Any

import pytest
import yaml
from tests.unit.chart.rendering import CHART, Object, find, find_pods, read_environment, render

EXTERNAL = {"enabled": False, "external": {"url": "https://logs.example.com", "existingSecret": "mine"}}
LONG = "a" * 52


def _list_mounted(objects: list[Object]) -> dict[str, str]:
    """The files of Grafana's container that come from ConfigMaps, with their content."""
    spec = find_pods(objects)["grafana"]["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    files = {}
    for mount in spec["containers"][0]["volumeMounts"]:
        volume = volumes[mount["name"]]
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        names = [source["configMap"]["name"] for source in sources if "configMap" in source]
        data = {key: text for name in names for key, text in find(objects, "ConfigMap", name)["data"].items()}
        if "subPath" in mount and data:
            files[mount["mountPath"]] = data[mount["subPath"]]
        else:
            files |= {f"{mount['mountPath']}/{name}": content for name, content in data.items()}
    return files


def _read_datasource(objects: list[Object]) -> dict[str, Any]:
    text = _list_mounted(objects)["/etc/grafana/provisioning/datasources/oku.yaml"]
    (datasource,) = yaml.safe_load(text)["datasources"]
    assert isinstance(datasource, dict)
    return datasource


def _merge(loki: dict[str, Any], **external: str) -> dict[str, Any]:
    return {"loki": {**loki, "external": {**loki["external"], **external}}}


def test_the_dashboards_that_are_mounted_are_those_of_the_chart() -> None:
    """They are the same to the letter, lie where the provider looks for them, and one of them opens first."""
    files = _list_mounted(render(chart=CHART))
    (provider,) = yaml.safe_load(files["/etc/grafana/provisioning/dashboards/oku.yaml"])["providers"]
    folder = provider["options"]["path"]
    sources = {f"{folder}/{path.name}": path.read_text() for path in (CHART / "dashboards").glob("*.json")}
    assert sources
    mounted = {name: content for name, content in files.items() if name.startswith(f"{folder}/")}
    assert mounted.keys() == sources.keys()
    for name, content in mounted.items():
        assert json.loads(content) == json.loads(sources[name])
    settings = configparser.ConfigParser()
    settings.read_string(files["/etc/grafana/grafana.ini"])
    assert settings["dashboards"]["default_home_dashboard_path"] in sources
    assert settings["plugins"]["preinstall_disabled"] == "true"


def test_the_data_source_is_the_loki_of_the_release() -> None:
    """The data source has the URL of the release's Loki Service."""
    objects = render(release="night", namespace="there")
    datasource = _read_datasource(objects)
    assert (datasource["type"], datasource["url"]) == ("loki", "http://night-loki:3100")
    (port,) = find(objects, "Service", "night-loki")["spec"]["ports"]
    assert port["port"] == 3100
    assert "secureJsonData" not in datasource


@pytest.mark.parametrize(
    ("release", "namespace"), [("night", "there"), (LONG, "there"), ("a.b", "n" * 63), ("oku", "there")]
)
def test_the_data_source_of_each_release_has_a_name_and_a_uid_of_its_own(
    release: str, namespace: str
) -> None:
    """One Grafana can have those of several releases; a uid has 40 characters at most."""
    own = _read_datasource(render(release=release, namespace=namespace))
    others = [
        _read_datasource(render(release=other, namespace=where))
        for other, where in (
            ("oku", "oku"),
            (release, f"{namespace}2"[-63:]),
            (f"{release}2"[-53:], namespace),
        )
    ]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", own["uid"])
    for key in ("uid", "name"):
        assert own[key] not in {other[key] for other in others}
    assert (others[0]["uid"], others[0]["name"]) == ("oku-loki", "Oku Loki")


def test_grafana_logs_in_at_a_loki_of_ones_own_as_the_coordinator_does() -> None:
    """It takes what stands in the Secret from variables; a ConfigMap has nothing secret."""
    basic = render(_merge(EXTERNAL, auth="basic", tenant="load"))
    datasource, environment = _read_datasource(basic), read_environment(find_pods(basic)["grafana"])
    assert datasource["basicAuth"] is True
    assert datasource["basicAuthUser"] == "$LOKI_USERNAME"
    assert datasource["secureJsonData"]["basicAuthPassword"] == "$LOKI_PASSWORD"
    assert datasource["jsonData"]["httpHeaderName1"] == "X-Scope-OrgID"
    assert datasource["secureJsonData"]["httpHeaderValue1"] == "load"
    assert environment["LOKI_PASSWORD"] == {"secretKeyRef": {"name": "mine", "key": "password"}}

    bearer = render(_merge(EXTERNAL, auth="bearer"))
    datasource, environment = _read_datasource(bearer), read_environment(find_pods(bearer)["grafana"])
    assert datasource["jsonData"]["httpHeaderName1"] == "Authorization"
    assert datasource["secureJsonData"]["httpHeaderValue1"] == "Bearer $LOKI_TOKEN"
    assert environment["LOKI_TOKEN"] == {"secretKeyRef": {"name": "mine", "key": "token"}}


def test_a_sidecar_finds_dashboards_and_data_source_by_label() -> None:
    """The labelled objects are in the namespace where the sidecar looks."""
    sidecar = {"dashboards": True, "datasource": True, "namespace": "monitoring", "folder": "Load"}
    objects = render({"grafana": {"enabled": False, "sidecar": sidecar}}, namespace="there", chart=CHART)
    for path in (CHART / "dashboards").glob("*.json"):
        name = path.stem.replace("oku-", "oku-dashboard-") + ".there"
        dashboard = find(objects, "ConfigMap", name)
        assert dashboard["metadata"]["namespace"] == "monitoring"
        assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert dashboard["metadata"]["annotations"]["grafana_folder"] == "Load"
        assert dashboard["data"].keys() == {path.name}
        assert json.loads(dashboard["data"][path.name]) == json.loads(path.read_text())
    datasource = find(objects, "ConfigMap", "oku-datasource.there")
    assert datasource["metadata"]["labels"]["grafana_datasource"] == "1"
    (content,) = datasource["data"].values()
    assert yaml.safe_load(content)["datasources"][0]["url"] == "http://oku-loki.there.svc:3100"
    assert "grafana" not in find_pods(objects)


def test_every_object_is_small_enough_for_kubectl_apply() -> None:
    """An annotation has the whole object, and may have 256 KiB."""
    assert all(len(json.dumps(each)) < 250_000 for each in render())
    # Without grafana there is nothing of it. Without Grafana the chart has no object of it.
    objects = render({"grafana": {"enabled": False}})
    components = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in objects}
    assert "grafana" not in components


def test_how_loki_is_set_up() -> None:
    """What has waited in the ledger may be older than what Loki takes by default."""
    config = yaml.safe_load(
        find(render({"loki": {"retention": "48h"}}), "ConfigMap", "oku-loki")["data"]["loki.yaml"]
    )
    assert config["limits_config"]["retention_period"] == "48h"
    assert config["compactor"]["retention_enabled"] is True
    assert config["limits_config"]["reject_old_samples"] is False
    assert config["ingester"]["query_store_max_look_back_period"] == -1
    # A changed configuration restarts its pods. A checksum in the pod's annotations changes with it.
    before, after = (find_pods(render({"loki": {"retention": hours}}))["loki"] for hours in ("48h", "72h"))
    assert before["metadata"]["annotations"] != after["metadata"]["annotations"]
