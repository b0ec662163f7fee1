"""A run over HTTP/2, by workers in pods, against a target of the user's own in another namespace."""

from pathlib import Path

from tests.kit.http2 import pod_server
from tests.kit.kubernetes.cluster import Cluster, build_container, build_pod
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed

_REQUESTS, _WORKERS = 20_000, 2
_POD = "target"


def test_workers_speak_http2_to_a_target_of_the_user(cluster: Cluster, release: Release) -> None:
    """Each of them; the target has had each request once, and has answered it."""
    with cluster.make_namespace() as namespace:
        program = Path(pod_server.__file__).read_text()
        container = build_container(_POD, ["python", "-c", program])
        cluster.apply(build_pod(_POD, namespace, [container]))
        cluster.wait_for_line(pod_server.LISTENING, _POD, namespace)
        address = cluster.fetch("pod", _POD, namespace)["status"]["podIP"]
        url = f"http://{address}:{pod_server.PORT}/items/{{i}}"
        summary = release.run(
            "--url",
            url,
            "--requests",
            str(_REQUESTS),
            "--workers",
            str(_WORKERS),
            "--http2",
            "--streams",
            "20",
        )
        cluster.call("exec", _POD, "-n", namespace, "--", "sh", "-c", "kill -TERM 1")
        said = cluster.wait_for_end(_POD, namespace)

    assert_completed(summary)
    assert summary["engine"] == "nghttp2"
    assert summary["outcomes"]["ok"] == summary["statuses"]["200"] == _REQUESTS
    # One of the run before may still be there.
    assert len([worker for worker in summary["workers"] if worker["requests"]]) >= _WORKERS
    assert summary["resent_at_most"] == 0
    assert f"served {_REQUESTS} of {_REQUESTS} paths\n" in f"{said}\n"
