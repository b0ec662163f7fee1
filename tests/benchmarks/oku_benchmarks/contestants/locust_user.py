"""Locust's fastest user, as a library in one process: exactly so many requests, no waiting between them.

`locust_user.py URL REQUESTS USERS FILE`: URL has `{i}` for the index, FILE gets what was counted. One task is
one request, as a locustfile has it; a user that finds no index left stops.
"""

# Locust replaces parts of the standard library as it is imported, so it comes first.
from locust import FastHttpUser, constant, task
from locust.env import Environment
from locust.exception import StopUser

# isort: split
import json
import sys
from pathlib import Path

import gevent


def run(url: str, requests: int, users: int) -> dict[str, int]:
    """Send all requests with `users` users that are started at once."""
    target, path = url.rsplit("/", 1)
    before, after = path.split("{i}")
    indices = iter(range(requests))

    class Getter(FastHttpUser):
        host = target
        wait_time = constant(0)

        @task
        def ask(self) -> None:
            index = next(indices, None)
            if index is None:
                raise StopUser
            self.client.get(f"/{before}{index}{after}", name="item")

    environment = Environment(user_classes=[Getter])
    runner = environment.create_local_runner()
    runner.start(users, spawn_rate=users)
    # Its statistics are a new object once the users run.
    while environment.stats.total.num_requests < requests:
        gevent.sleep(0.05)
    runner.quit()
    total = environment.stats.total
    return {"ok": total.num_requests - total.num_failures, "failed": total.num_failures}


if __name__ == "__main__":
    url, requests, users, file = sys.argv[1:]
    account = run(url, int(requests), int(users))
    Path(file).write_text(json.dumps(account))
