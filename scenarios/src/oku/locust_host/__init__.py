"""The host of locustfiles: Locust's users on gevent, each leaf task an iteration."""
