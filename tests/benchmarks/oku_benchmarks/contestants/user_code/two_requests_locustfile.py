# The scenario of two requests for Locust; as a user writes it:
# ruff: noqa: ANN201, D101, D102
# mypy: ignore-errors
from locust import FastHttpUser, constant, task


class Visitor(FastHttpUser):
    wait_time = constant(0)

    @task
    def order(self):
        self.client.get("/cart")
        self.client.get("/order")
