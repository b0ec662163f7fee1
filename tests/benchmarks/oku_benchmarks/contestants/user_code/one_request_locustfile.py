# What Locust and Oku are both given, unchanged; as a user writes it:
# ruff: noqa: ANN201, D101, D102
# mypy: ignore-errors
from locust import FastHttpUser, constant, task


class Visitor(FastHttpUser):
    wait_time = constant(0)

    @task
    def visit(self):
        self.client.get("/item")
