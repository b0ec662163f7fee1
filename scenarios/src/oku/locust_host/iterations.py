"""Makes each leaf task of Locust an iteration, and counts what the users' clients tell of under it."""

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from gevent import GreenletExit
from gevent.event import Event
from locust import TaskSet, User
from locust.exception import (
    InterruptTaskSet,
    RescheduleTask,
    RescheduleTaskImmediately,
    StopTest,
    StopUser,
)
from locust.user.task import DefaultTaskSet

from oku.host_session import HostSession, Iteration, RequestResult
from oku.locust_host.request_outcome import classify
from oku.locust_host.user_state import OkuView, SharedData, UserState, find_state
from oku.sandbox.user_module import describe_exception, format_traceback
from oku_core.accounting.outcome import EXCEPTION, FAILED_CHECK, OK, TIMEOUT
from oku_core.accounting.outcome import OK as REQUEST_OK
from oku_core.process.redaction import redact
from oku_core.user_code.messages import HIGHEST_FIGURE, HIGHEST_STATUS

_CONTROL = (InterruptTaskSet, RescheduleTask, RescheduleTaskImmediately, StopUser, StopTest)
"""With these a task says what its user does next."""
_Execute = Callable[[TaskSet, Any], object]
_Play = Callable[[_Execute, TaskSet, Any], None]
_US_PER_MS = 1_000
_MOST_PARENTS = 20
MOST_GIVEN_UP = 10
"""How many sets of tasks a user may give up in a row for free: some check whether it is their turn."""
_NO_NAME = "(no name)"


class _Cut(GreenletExit):  # type: ignore[misc]  # gevent has no types
    """The iteration is cut off; clients of Locust count any other exception as a failed request."""


class TaskSetGaveUpError(Exception):
    """A set of tasks was interrupted before its first task."""


class _Over(GreenletExit):  # type: ignore[misc]
    """The iteration has taken as long as it may."""


class ReportTimer:
    """When the host reports: soon after something has ended, at once when users wait for more."""

    def __init__(self) -> None:
        self._has_news, self._is_urgent = Event(), Event()
        self._is_set = False

    def report_soon(self) -> None:
        """Report soon."""
        if not self._is_set:
            self._is_set = True
            self._has_news.set()

    def report_now(self) -> None:
        """Report at once."""
        if not self._is_urgent.is_set():
            self._is_urgent.set()
            self.report_soon()

    def wait(self, longest_s: float) -> None:
        """Wait until there is something to report; unless it is urgent, wait `longest_s` for more."""
        self._has_news.wait()
        self._is_urgent.wait(longest_s)
        self._has_news.clear()
        self._is_urgent.clear()
        self._is_set = False


class Iterations:
    """Hands iterations to users, and ends them.

    Args:
        session: has the iterations.
        folder: where the files of user code are.
        limit_s: how long an iteration may take; None for any time.
        timeout_s: the limit of a request.
        reports: schedules the reports to the worker.

    Attributes:
        states: the users at work, by their greenlets.
        idle: those that wait for an iteration, the one that has waited longest first.
        is_closing: whether all that is under way is dropped.
    """

    def __init__(
        self,
        session: HostSession,
        folder: Path,
        limit_s: float | None,
        timeout_s: float,
        reports: ReportTimer,
    ) -> None:
        self._session = session
        self._folder = folder
        self._limit_s = limit_s
        self._timeout_s = timeout_s
        self._hub: Any = gevent.get_hub()
        self.states: dict[object, UserState] = {}
        self.idle: deque[UserState] = deque()
        self.is_closing = False
        self._reports = reports

    def install(self, data: SharedData) -> None:
        """Have Locust's users ask for an iteration before each leaf task, and give them `self.oku`."""
        for kind in (TaskSet, DefaultTaskSet):
            _patch(kind, self.play, self.enter)
        vars_of_user: Any = User
        vars_of_user.oku = property(lambda user: OkuView(data, find_state(user)))
        vars_of_tasks: Any = TaskSet
        vars_of_tasks.oku = property(lambda tasks: tasks.user.oku)

    def enter(self, execute: _Execute, tasks: TaskSet, inner: type[TaskSet]) -> None:
        """Carry out a set of tasks within another; its tasks are the iterations.

        A run would never end if its users kept giving up such sets before the first task, so after a while
        each time costs an iteration.
        """
        state = find_state(tasks.user)
        ended = state.ended
        try:
            execute(tasks, inner)
        except (RescheduleTask, RescheduleTaskImmediately) as error:
            if state.ended == ended and state.iteration is None and state.give_up() > MOST_GIVEN_UP:
                gave_up = TaskSetGaveUpError(f"{inner.__name__} was interrupted before its first task")
                self.fail(state, gave_up.with_traceback(error.__traceback__))
                state.gave_up_after = state.ended
            raise

    def play(self, execute: _Execute, tasks: TaskSet, task: Any) -> None:
        """Carry out a task as an iteration; one within another belongs to that."""
        state = find_state(tasks.user)
        if state.iteration is not None:
            execute(tasks, task)
            return
        state.iteration = iteration = self._session.start_next() or self._wait(state)
        timer = None if self._limit_s is None else gevent.Timeout.start_new(self._limit_s, _Over())
        try:
            execute(tasks, task)
        except BaseException as error:
            state.iteration = None
            if not self._end_raised(state, iteration, error):
                raise
        else:
            state.iteration = None
            if timer is None and not state.is_cut:
                failure = iteration.failure
                self._session.end(iteration, FAILED_CHECK if failure else OK, failure)
            else:
                self._end(state, iteration)
        finally:
            state.ended += 1
            if timer is not None:
                timer.close()
            self._reports.report_soon()

    def fail(self, state: UserState, error: BaseException) -> None:
        """User code has raised outside of any task: that costs an iteration.

        So a user that cannot work ends a run rather than hang it.
        """
        iteration = self._session.start_next() or self._wait(state)
        state.ended += 1
        self._end_exception(iteration, error)
        self._reports.report_soon()

    def wake(self) -> None:
        """Let as many idle users run as there are iterations."""
        for _ in range(min(self._session.waiting, len(self.idle))):
            state = self.idle.popleft()
            state.is_idle, state.is_woken = False, True
            self._hub.loop.run_callback(_resume, state)

    def dismiss(self, state: UserState) -> None:
        """Have an idle user stop."""
        state.is_dismissed = True
        self.idle.remove(state)
        state.is_idle, state.is_woken = False, True
        self._hub.loop.run_callback(_resume, state)

    def cut(self, slots: set[int]) -> None:
        """Cut off the iterations in these slots; their users go on with the next."""
        for state in list(self.states.values()):
            if state.iteration is not None and state.iteration.slot in slots:
                state.is_cut = True
                self._hub.loop.run_callback(_throw, state, state.iteration)

    def on_request(  # as Locust calls it
        self,
        *,
        request_type: object = "",
        name: object = None,
        response_time: float | None = None,
        response_length: int | None = None,
        exception: object = None,
        response: object = None,
        **_: object,
    ) -> None:
        """Count a request of a client of Locust, in the iteration of its user."""
        state = self.states.get(gevent.getcurrent()) or self._find_parent()
        iteration = state.iteration if state is not None else None
        status = getattr(response, "status_code", 0) if response is not None else 0
        if type(status) is not int or not 0 <= status <= HIGHEST_STATUS:
            status = 0  # of another protocol
        outcome, reason = REQUEST_OK, ""
        # Locust tells requests apart by both.
        name = f"{_write_method(str(request_type))} {str(name) if name else _NO_NAME}".lstrip()
        if exception is not None and exception is not False:
            outcome, reason = classify(exception, status, self._timeout_s)
            reason = reason.replace(
                f"{self._folder}/", ""
            )  # `rest` names files; each host has its own folder
            if iteration is not None and not iteration.failure:
                iteration.failure = f"{name}: {reason}"
        latency_us = _bound(response_time * _US_PER_MS) if response_time else 0
        received = _bound(response_length) if response_length else 0
        self._session.record(iteration, RequestResult(name, outcome, status, latency_us, received, reason))
        if iteration is None:
            self._reports.report_soon()

    def on_user_error(self, user_instance: User | TaskSet, exception: BaseException, **_: object) -> None:
        """Count what user code has raised, unless it came out of a task and is counted already."""
        # What Locust calls so may be a set of tasks.
        user = user_instance if isinstance(user_instance, User) else user_instance.user
        state = find_state(user)
        if state.raised is exception:
            state.raised = None
        else:
            self.fail(state, exception)

    def _find_parent(self) -> UserState | None:
        """The user whose greenlet has started the current one, or one that did; None if there is none."""
        greenlet: Any = gevent.getcurrent()
        for _ in range(_MOST_PARENTS):
            find = getattr(greenlet, "spawning_greenlet", None)
            greenlet = find() if find is not None else None
            if greenlet is None:
                return None
            if (state := self.states.get(greenlet)) is not None:
                return state
        return None

    def _wait(self, state: UserState) -> Iteration:
        """Wait in the greenlet of a user until there is an iteration for it."""
        session = self._session
        while True:
            if state.is_dismissed or self.is_closing:
                self.wake()
                raise StopUser
            if (iteration := session.start_next()) is not None:
                return iteration
            self.idle.append(state)
            state.is_idle = True
            if state.greenlet is None:
                state.greenlet = gevent.getcurrent()
            if session.wants_more(len(self.idle)):
                self._reports.report_now()
            try:
                self._hub.switch()
            except BaseException:
                self._pass_on(state)
                raise
            if state.is_idle:  # something else has switched to it
                self._pass_on(state)

    def _pass_on(self, state: UserState) -> None:
        """A user does not wait any more; what it was woken for is for another one."""
        if state.is_idle:
            self.idle.remove(state)
        state.is_idle = state.is_woken = False
        self.wake()

    def _end(self, state: UserState, iteration: Iteration) -> None:
        """A task has ended by itself."""
        if state.is_cut:
            state.is_cut = False
            self._session.drop(iteration)
        elif self._is_over(iteration):
            self._end_over(iteration)
        else:
            outcome = FAILED_CHECK if iteration.failure else OK
            self._session.end(iteration, outcome, iteration.failure)

    def _end_raised(self, state: UserState, iteration: Iteration, error: BaseException) -> bool:
        """A task has raised; returns whether its user goes on as if it had not."""
        if state.is_cut or isinstance(error, _Cut):
            state.is_cut = False
            self._session.drop(iteration)
            return isinstance(error, _Cut)
        if isinstance(error, _Over) or self._is_over(iteration):
            self._end_over(iteration)
            state.raised = error
            return isinstance(error, _Over)
        if isinstance(error, _CONTROL):
            self._end(state, iteration)
            return False
        if isinstance(error, GreenletExit) and self.is_closing:
            self._session.drop(iteration)
            return False
        state.raised = error
        self._end_exception(iteration, error)
        # It would end this process, and with it the iterations of all others.
        return isinstance(error, (SystemExit, KeyboardInterrupt))

    def _end_exception(self, iteration: Iteration, error: BaseException) -> None:
        reason = describe_exception(error, self._folder)
        self._session.end(iteration, EXCEPTION, reason, format_traceback(error, self._folder))

    def _is_over(self, iteration: Iteration) -> bool:
        return self._limit_s is not None and time.monotonic_ns() - iteration.begun_ns > self._limit_s * 1e9

    def _end_over(self, iteration: Iteration) -> None:
        self._session.end(iteration, TIMEOUT, f"no end within {self._limit_s:g}s")


def _patch(kind: Any, play: _Play, enter: _Play) -> None:
    execute = kind.execute_task

    def execute_task(self: TaskSet, task: Any) -> None:
        if isinstance(task, type) and issubclass(task, TaskSet):
            enter(execute, self, task)
        else:
            play(execute, self, task)

    kind.execute_task = execute_task


def _resume(state: UserState) -> None:
    """Run a user that was woken, unless it has ended meanwhile; called in the hub."""
    if state.is_woken and state.greenlet is not None:
        state.is_woken = False
        state.greenlet.switch()


def _throw(state: UserState, iteration: Iteration) -> None:
    """Cut an iteration off, unless it has ended meanwhile; called in the hub."""
    if state.iteration is iteration and state.greenlet is not None:
        state.greenlet.throw(_Cut())


def _write_method(method: str) -> str:
    """The method of a request as one word."""
    is_word = len(method.split()) <= 1
    return method.strip() if is_word else "_".join(redact(method).split())  # before a secret is changed


def _bound(figure: float) -> int:
    """What a client tells of as a worker takes it: clients of users may tell of anything."""
    return int(min(figure, HIGHEST_FIGURE)) if figure > 0 else 0
