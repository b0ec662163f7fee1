"""What `environment.runner` is in a locustfile: Locust's own for one process, without a load of its own."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import gevent
from locust import User
from locust.env import Environment
from locust.event import Events
from locust.runners import STATE_CLEANUP, STATE_RUNNING, STATE_STOPPED, LocalRunner

_log = logging.getLogger(__name__)

_STATS_WORD = "stats"


class LoadTest(Protocol):
    """A test that user code can end."""

    def quit(self, reason: str) -> None:
        """End it: user code has asked for that."""
        ...


class OkuRunner(LocalRunner):
    """The runner of a host; how many users there are is the coordinator's to say.

    Args:
        environment: of Locust.
        test: a locustfile may end it.
        keeps_stats: whether Locust's own statistics are kept, which cost as much as Oku's.
    """

    def __init__(self, environment: Environment, test: LoadTest, *, keeps_stats: bool) -> None:
        events = environment.events
        if not keeps_stats:
            environment.events = Events()  # its listeners count requests and format tracebacks
        super().__init__(environment)
        environment.events = events
        self._test = test
        self._is_closing = False

    def start(
        self,
        user_count: int,  # noqa: ARG002  # as in Locust; it cannot be had here
        spawn_rate: float,  # noqa: ARG002
        wait: bool = False,  # noqa: ARG002, FBT001, FBT002
        user_classes: list[type[User]] | None = None,  # noqa: ARG002
    ) -> None:
        """Say that this does nothing."""
        _log.warning("environment.runner.start() does nothing here: users are set by --users or --stage")

    def stop(self) -> None:
        """A locustfile ends the test."""
        if not self._is_closing:
            place = _find_caller()
            self._test.quit(f"the locustfile has ended the test: environment.runner.{place}")

    def quit(self) -> None:
        """A locustfile ends the test."""
        self.stop()

    def close(self, limit_s: float) -> None:
        """Stop all users within `limit_s`, and fire the events of the end as Locust does."""
        self._is_closing = True
        events = self.environment.events
        events.test_stopping.fire(environment=self.environment)
        self.final_user_classes_count = dict(self.user_classes_count)
        self.update_state(STATE_CLEANUP)
        with gevent.Timeout(limit_s, exception=False):
            self.user_greenlets.kill(block=True)
        self.update_state(STATE_STOPPED)
        events.test_stop.fire(environment=self.environment)
        events.quitting.fire(environment=self.environment, reverse=True)
        events.quit.fire(exit_code=self.environment.process_exit_code or 0)
        self.greenlet.kill(block=False)

    def announce_running(self) -> None:
        """Tell user code that users are at work."""
        self.update_state(STATE_RUNNING)


def reads_stats(folder: Path) -> bool:
    """Whether user code may look at Locust's statistics: a file of it has that word, or plugins are there."""
    if "locust_plugins" in sys.modules:
        return True
    return any(_STATS_WORD in path.read_text(errors="replace") for path in list_modules(folder))


def list_modules(folder: Path) -> Sequence[Path]:
    """The files of user code that are Python."""
    return sorted(folder.rglob("*.py"))


def _find_caller() -> str:
    """Where user code has called a method of the runner: `stop() (file.py:12)`."""
    frame: Any = sys._getframe(1)  # noqa: SLF001  # the documented way to look at one frame
    name = "stop"
    while frame is not None and frame.f_code.co_filename == __file__:
        name = frame.f_code.co_name
        frame = frame.f_back
    place = f" ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})" if frame is not None else ""
    return f"{name}(){place}"
