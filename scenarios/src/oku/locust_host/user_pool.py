"""Keeps as many users of Locust at work as are wanted: makes, replaces and dismisses them."""

import contextlib
from collections import Counter, defaultdict
from typing import Any

import gevent
from gevent.event import Event
from locust import User
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import WorkerNode
from locust.user.task import LOCUST_STATE_STOPPING, LOCUST_STATE_WAITING

from oku.host_session import HostSession
from oku.locust_host.iterations import Iterations, ReportTimer
from oku.locust_host.user_state import UserState, find_state

_HERE = "oku"
_YIELD_EVERY = 10
"""Yield to other greenlets after this many new users."""


class UserPool:
    """The users of one host.

    A user that ends by itself is replaced if it has ended an iteration: it was the session of one visitor,
    and the next one comes. One that has ended none is not, unless none is left.

    Args:
        environment: of Locust, with its runner.
        session: says how many users there shall be.
        iterations: has those that are at work.
        reports: one is due when no user is left, or when none was there and none is wanted.
    """

    def __init__(
        self,
        environment: Environment,
        session: HostSession,
        iterations: Iterations,
        reports: ReportTimer,
    ) -> None:
        self._environment = environment
        self._session = session
        self._iterations = iterations
        self._reports = reports
        self._by_class: defaultdict[str, set[UserState]] = defaultdict(set)
        self._retired: Counter[str] = Counter()
        self._dispatcher = environment.dispatcher_class(
            worker_nodes=[WorkerNode(_HERE)], user_classes=environment.user_classes
        )
        self._counts: dict[str, int] = {}
        self._target = self._complete = 0
        self._change = Event()

    @property
    def count(self) -> int:
        """How many users are at work, with those that stop."""
        return sum(map(len, self._by_class.values()))

    @property
    def is_empty(self) -> bool:
        """Whether no user is at work."""
        return not self.count

    def adjust_soon(self) -> None:
        """Look how many users there are, and shall be."""
        self._change.set()

    def run(self) -> None:
        """Keep looking."""
        while True:
            self._change.wait()
            self._change.clear()
            self._adjust()

    def _adjust(self) -> None:
        self._share_out(self._session.users)
        for name, count in self._counts.items():
            states = self._by_class[name]
            surplus = [state for state in states if not state.is_dismissed]
            missing = count - self._retired[name] - len(surplus)
            for number in range(missing):
                self._hire(self._environment.user_classes_by_name[name])
                if number % _YIELD_EVERY == _YIELD_EVERY - 1:
                    gevent.sleep(0)
            surplus.sort(key=lambda state: state.is_idle)
            for state in surplus[count:]:
                self._dismiss(state)
        if self.is_empty:
            if self._session.users:
                self._stand_in()
            else:
                self._reports.report_soon()
        if self._complete != self._target and not self._change.is_set():
            self._complete = self._target
            self._environment.events.spawning_complete.fire(user_count=self._target)

    def _share_out(self, users: int) -> None:
        """Share users out over the classes, by their weights, as Locust does."""
        if users == self._target:
            return
        self._target = users
        self._retired.clear()
        runner: Any = self._environment.runner
        runner.target_user_count = users
        self._dispatcher.new_dispatch(users, max(1, abs(users - self._dispatcher.get_current_user_count())))
        counts = [counts[_HERE] for counts in self._dispatcher]
        if counts:
            self._counts = counts[-1]
        runner.target_user_classes_count = dict(self._counts)

    def _hire(self, kind: type[User]) -> None:
        runner = self._environment.runner
        assert runner is not None
        name = kind.__name__
        try:
            [user] = runner.spawn_users({name: 1})
        except Exception as error:  # noqa: BLE001  # an error of its constructor is counted
            self._enter_failing(name, error)
            return
        state = find_state(user)
        state.greenlet = user.greenlet
        self._enter(name, state)

    def _enter(self, name: str, state: UserState) -> None:
        self._by_class[name].add(state)
        self._iterations.states[state.greenlet] = state
        assert state.greenlet is not None
        state.greenlet.rawlink(lambda greenlet: self._leave(name, state, greenlet))

    def _leave(self, name: str, state: UserState, greenlet: object) -> None:
        """A user has ended."""
        self._by_class[name].discard(state)
        self._iterations.states.pop(greenlet, None)
        if not state.is_dismissed and not state.ended:
            self._retired[name] += 1
        self._change.set()

    def _dismiss(self, state: UserState) -> None:
        """Have a user stop as soon as its task has ended."""
        if state.is_idle:
            self._iterations.dismiss(state)
            return
        state.is_dismissed = True
        user = state.user
        if user is not None and user._state != LOCUST_STATE_STOPPING:  # noqa: SLF001  # stopping twice raises
            gevent.spawn(_stop, user)

    def _stand_in(self) -> None:
        """All users have stopped before their first task: without an end, iterations would wait for ever."""
        self._enter_failing(next(iter(self._counts)), StopUser("every user has stopped at its start"))

    def _enter_failing(self, name: str, error: Exception) -> None:
        """Have an iteration end with an error for which there is no user to carry it out."""
        greenlet = gevent.Greenlet(self._fail_once, error)
        self._enter(name, UserState(greenlet=greenlet))
        greenlet.start()

    def _fail_once(self, error: Exception) -> None:
        with contextlib.suppress(StopUser):
            self._iterations.fail(self._iterations.states[gevent.getcurrent()], error)


def _stop(user: User) -> None:
    """Have a user stop: one that waits for its next task at once.

    Its wait may end before it is killed. It must not begin a task then, in which the kill would meet it.
    """
    if user._state == LOCUST_STATE_WAITING:  # noqa: SLF001  # Locust has no other way to ask
        user._state = LOCUST_STATE_STOPPING  # noqa: SLF001
        user.group.killone(user.greenlet)
    else:
        user.stop()
