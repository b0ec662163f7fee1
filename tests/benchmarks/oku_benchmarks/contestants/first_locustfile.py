# What a newcomer to Locust writes so that it makes a thousand requests; as they write it:
# ruff: noqa: ANN201, D101, D102
# mypy: ignore-errors
from itertools import count

from gevent import spawn
from locust import HttpUser, task
from locust.exception import StopUser

requests = count()


class Visitor(HttpUser):
    @task
    def visit(self):
        number = next(requests)
        if number < 1000:
            self.client.get("/")
        elif number == 1000:
            spawn(self.environment.runner.quit)
        else:
            raise StopUser
