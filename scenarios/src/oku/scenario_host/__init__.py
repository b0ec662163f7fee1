"""The host of Python scenarios: each user is a task that calls the coroutine `scenario`."""
