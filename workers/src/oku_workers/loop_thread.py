"""The event loop of a worker, in a thread of its own, and the way into it for Celery's threads."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

_T = TypeVar("_T")


class LoopThread:
    """Runs an event loop from `start` to `end`."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="requests", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def await_result(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the loop and block until it is done; gives its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def ask(self, call: Callable[[], _T], timeout_s: float | None = None) -> _T:
        """Call a function in the loop and block for its result.

        A function is not called if its caller has stopped waiting.

        Raises:
            TimeoutError: the loop is too busy.
        """
        answer: Future[_T] = Future()

        def reply() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(call())
            except Exception as error:  # noqa: BLE001  # the caller gets it
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(reply)
        try:
            return answer.result(timeout_s)
        finally:
            answer.cancel()

    def post(self, call: Callable[[], object]) -> None:
        """Call a function in the loop, and wait for nothing."""
        self._loop.call_soon_threadsafe(call)

    def find_place(self) -> str:
        """Where in the code the loop is now."""
        frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001  # there is no other way
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "nowhere: its thread has ended"

    def end(self) -> None:
        """Stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
