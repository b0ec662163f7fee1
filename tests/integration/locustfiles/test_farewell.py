"""What users do when they stop is counted, however a run comes to rest: on a real stack."""

from collections import Counter
from pathlib import Path
from signal import SIGINT

import pytest
from tests.kit.runs.local_run import starting_runs
from tests.kit.servers.arrival_target import run_arrival_target

LOCUSTFILE = """\
from locust import FastHttpUser, task


class Visitor(FastHttpUser):
    def on_start(self):
        self.client.get("/enter")

    def on_stop(self):
        self.client.get("/leave")

    @task
    def visit(self):
        self.client.get("/visit")
"""

pytestmark = pytest.mark.timeout(180)


def test_each_request_of_a_user_that_stops_is_counted(tmp_path: Path) -> None:
    """At a pause, and at the end after it: each name has as many requests as the target was asked for."""
    (tmp_path / "locustfile.py").write_text(LOCUSTFILE)
    with run_arrival_target(delay_s=0.005) as target, starting_runs(tmp_path) as start:

        def count_asked() -> dict[str, int]:
            return dict(Counter(f"GET {arrival.request.target}" for arrival in target.arrivals))

        host = target.url.removesuffix("/{i}")
        run = start(
            "run", str(tmp_path / "locustfile.py"), "-n", "3000", "--users", "6", "-w", "2", "--host", host
        )
        run.wait_for_accounted(300)
        run.process.send_signal(SIGINT)
        paused = run.finish()
        assert paused["state"] == "paused"
        assert count_inner(paused) == count_asked()
        assert count_asked()["GET /leave"] == count_asked()["GET /enter"] == 6
        ended = start("resume", "latest").finish()
        assert (ended["state"], ended["outcomes"]["ok"], ended["resent_at_most"]) == ("completed", 3000, 0)
        assert count_inner(ended) == count_asked()
        assert count_asked() == {"GET /enter": 12, "GET /leave": 12, "GET /visit": 3000}


def count_inner(summary: dict[str, list[dict[str, object]]]) -> dict[object, object]:
    """How many requests a summary has by name."""
    return {each["name"]: each["requests"] for each in summary["inner_requests"]}
