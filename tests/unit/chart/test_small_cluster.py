"""The chart's defaults on a node of 2 processors and 4 GB, beside what a cluster has there of its own."""

from typing import Any

from tests.unit.chart.rendering import find_pods, render

# What kubeadm and kind put on a single node: API server 250m, controllers 200m, two CoreDNS 200m, etcd,
# scheduler and network 100m each; 290Mi, beside 1 GiB that kernel, kubelet and container runtime take.
FREE_CPU_M = 2000 - 950
FREE_MI = 4 * 1000**3 // 1024**2 - 290 - 1024
COUNTS = {"coordinator": 1, "workers": 2, "servers": 1, "valkey": 1, "loki": 1, "grafana": 1, "test": 1}


def read_cpu_m(text: str) -> float:
    """Thousandths of a processor."""
    return float(text.removesuffix("m")) if text.endswith("m") else 1000 * float(text)


def read_mi(text: str) -> float:
    """Mebibytes."""
    return float(text.removesuffix("Gi")) * 1024 if text.endswith("Gi") else float(text.removesuffix("Mi"))


def sum_requests(pods: dict[str, Any], what: str) -> float:
    """What all of them request."""
    read = {"cpu": read_cpu_m, "memory": read_mi}[what]
    return sum(
        count * read(container["resources"]["requests"][what])
        for component, count in COUNTS.items()
        for container in pods[component]["spec"]["containers"]
    )


def test_all_pods_and_the_test_fit_on_a_small_node() -> None:
    """Otherwise the first thing a newcomer sees is a `helm test` that waits for a worker until it fails."""
    pods = find_pods(render())
    assert set(pods) == set(COUNTS)
    assert sum_requests(pods, "cpu") <= FREE_CPU_M
    assert sum_requests(pods, "memory") <= FREE_MI
