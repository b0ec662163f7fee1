"""What the chart hands to a Prometheus operator."""

from typing import Any

import pytest
import yaml
from tests.unit.chart.rendering import CHART, find_kind, refuse, render

SCRAPED: dict[str, Any] = {"networkPolicy": {"apiClients": [{"podSelector": {}, "namespaceSelector": {}}]}}
ALERTS = [rule["alert"] for rule in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())]


def render_monitor(**values: Any) -> dict[str, Any]:
    """The ServiceMonitor with these values of it."""
    monitor = {"coordinator": {"serviceMonitor": {"enabled": True, **values}}}
    (rendered,) = find_kind(render({**SCRAPED, **monitor}), "ServiceMonitor")
    return rendered


def render_rule(namespace: str = "load", release: str = "oku", **values: Any) -> dict[str, Any]:
    """The PrometheusRule with these values of it."""
    rule = {"coordinator": {"prometheusRule": {"enabled": True, **values}}}
    (rendered,) = find_kind(render(rule, namespace=namespace, release=release), "PrometheusRule")
    return rendered


def list_rules(rendered: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of its one group."""
    (group,) = rendered["spec"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def test_neither_is_there_by_default() -> None:
    """A cluster without the operator has no such kinds."""
    assert not [each for each in render() if each["apiVersion"].startswith("monitoring.coreos.com")]


def test_a_service_monitor_is_as_it_is_told_to_be() -> None:
    """It has the labels by which Prometheus finds it, and nothing that Prometheus decides by itself."""
    monitor = render_monitor(labels={"release": "prometheus"})
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [{"port": "http", "path": "/metrics", "interval": "15s"}]
    # A service monitor relabels as it is told. Rules before the scrape and after it, to the letter.
    before = [{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}]
    after = [{"sourceLabels": ["__name__"], "regex": "oku_target_.*", "action": "drop"}]
    monitor = render_monitor(interval="1m", scrapeTimeout="20s", relabelings=before, metricRelabelings=after)
    assert monitor["spec"]["endpoints"] == [
        {
            "port": "http", "path": "/metrics", "interval": "1m", "scrapeTimeout": "20s",
            "relabelings": before, "metricRelabelings": after,
        }
    ]  # fmt: skip


def test_each_alert_is_of_this_release_alone() -> None:
    """By the labels that the ServiceMonitor gives its series; another selector takes their place."""
    for release, job in (("oku", "oku-coordinator"), ("other", "other-coordinator")):
        rules = list_rules(render_rule("team", release))
        assert [rule["alert"] for rule in rules] == ALERTS
        for rule in rules:
            assert rule["expr"].count("{") == rule["expr"].count(f'{{namespace="team",job="{job}"'), rule
            assert rule["labels"].keys() == {"severity", "namespace"}
            assert " team" in rule["annotations"]["summary"]
            assert "runbook_url" not in rule["annotations"]
    rules = list_rules(render_rule(selector='job=~"oku: .*"'))
    assert all('{job=~"oku: .*"' in rule["expr"] for rule in rules)
    assert not any(word in str(rules) for word in ("SELECTOR", "NAMESPACE", "namespace="))


def test_a_rule_has_the_labels_and_the_runbook_of_a_team() -> None:
    """Labels of the object are for Prometheus, those of alerts for Alertmanager."""
    rendered = render_rule(
        labels={"release": "prometheus"}, interval="30s",
        ruleLabels={"team": "load", "severity": "page"}, runbookUrl="https://wiki.example.com/oku#",
    )  # fmt: skip
    assert rendered["metadata"]["labels"]["release"] == "prometheus"
    assert rendered["spec"]["groups"][0]["interval"] == "30s"
    for rule in list_rules(rendered):
        assert rule["labels"] == {"team": "load", "severity": "page", "namespace": "load"}
        url = f"https://wiki.example.com/oku#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == url


def test_alerts_can_be_left_out_and_added() -> None:
    """Rules of one's own are not changed, templates of Prometheus in them included."""
    own = {
        "alert": "OursFails", "expr": 'oku_runs{state="failed"} > 3', "for": "1m",
        "annotations": {"summary": "{{ $value }} runs of NAMESPACE"},
    }  # fmt: skip
    rules = list_rules(render_rule(disabled=["OkuRunWaits", "OkuDiskNearlyFull"], extraRules=[own]))
    left = [name for name in ALERTS if name not in {"OkuRunWaits", "OkuDiskNearlyFull"}]
    assert [rule["alert"] for rule in rules] == [*left, "OursFails"]
    assert rules[-1] == own
    (alone,) = list_rules(render_rule(disabled=ALERTS, extraRules=[own]))
    assert alone == own


@pytest.mark.parametrize(
    ("part", "values", "sentence"),
    [
        (
            "prometheusRule",
            {"disabled": ["OkuRunWait"]},
            "the chart has no alert OkuRunWait; it has OkuCoord",
        ),
        ("prometheusRule", {"selector": "job=oku"}, "/coordinator/prometheusRule/selector"),
        ("prometheusRule", {"interval": "often"}, "/coordinator/prometheusRule/interval"),
        ("prometheusRule", {"runbookUrl": "wiki"}, "/coordinator/prometheusRule/runbookUrl"),
        ("prometheusRule", {"extraRules": [{"alert": "Ours"}]}, "/coordinator/prometheusRule/extraRules/0"),
        ("serviceMonitor", {"interval": "15"}, "/coordinator/serviceMonitor/interval"),
        ("serviceMonitor", {"relabelings": ["drop"]}, "/coordinator/serviceMonitor/relabelings/0"),
        ("serviceMonitor", {"metricRelabelings": {}}, "/coordinator/serviceMonitor/metricRelabelings"),
    ],
)
def test_values_that_cannot_work_are_refused(part: str, values: dict[str, Any], sentence: str) -> None:
    """The line names the value."""
    assert sentence in refuse({"coordinator": {part: {"enabled": True, **values}}}).replace(".", "/")
