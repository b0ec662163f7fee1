"""Calls a hook of user code, in a host of its own: it runs beside one that carries out iterations."""

import asyncio
import logging
import os
from functools import partial
from typing import Any

from oku_core.messaging.hook import HookAttempt
from oku_core.spec.files import list_files
from oku_core.spec.spec import Spec, encode_spec
from oku_core.user_code.messages import Call, Refused, Returned
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.user_code.code_folder import build_code_folder, remove_code_folder
from oku_workers.engines.user_code.host_process import HostProcess

_log = logging.getLogger(__name__)

_ENDING_S, _LAST_WORDS_S = 2.0, 0.5
"""How long a host may take to exit: after its answer, and after it has closed its socket by itself."""


class HostLostError(Exception):
    """The process that called a hook has ended without an answer; the message has the cause."""


class _Waiter:
    """Waits for the result of a hook."""

    def __init__(self, answer: asyncio.Future[Returned]) -> None:
        self.answer = answer
        self.ended = asyncio.Event()

    def on_message(self, message: object) -> None:
        """Take the first answer."""
        if self.answer.done():
            return
        if isinstance(message, Returned):
            self.answer.set_result(message)
        elif isinstance(message, Refused):
            self.answer.set_result(Returned(error=message.reason))

    def on_end(self) -> None:
        """The process has ended."""
        self.ended.set()


async def request_hook(attempt: HookAttempt, spec: Spec, context: EngineContext, limit_s: float) -> Returned:
    """Call a hook and return its result or its error; a cancelled call kills it.

    Args:
        attempt: which hook.
        spec: one that runs user code, with its secrets.
        context: has its files and the result of `setup`.
        limit_s: how long it may take, with loading the code.

    Raises:
        EngineError: the files of the user code cannot be written.
        HostLostError: its process has ended without an answer.
    """
    folder = await asyncio.to_thread(build_code_folder, spec, context.find_file)
    loop = asyncio.get_running_loop()
    waiter = _Waiter(loop.create_future())
    answer, ended = waiter.answer, waiter.ended
    host = HostProcess(
        spec.chosen_engine, folder, context.isolation, waiter, partial(context.output.record, attempt.run)
    )
    _log.info("process %d calls %s", host.pid, attempt)
    waiting = asyncio.ensure_future(ended.wait())
    try:
        paths = {file.digest: os.fsencode(context.find_file(file.digest)) for file in list_files(spec)}
        host.send(
            Call(
                hook=attempt.hook,
                spec=encode_spec(spec),
                folder=os.fsencode(folder),
                paths=paths,
                setup_data=context.setup_data,
                secrets=context.secrets,
                is_confined=context.isolation.is_confined,
            )
        )
        either: list[asyncio.Future[Any]] = [answer, waiting]
        await asyncio.wait(either, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() and not waiting.done():
            return Returned(error=f"it took longer than {limit_s:g} s")
        how = await host.wait(_ENDING_S if answer.done() else _LAST_WORDS_S)
        if not answer.done():
            raise HostLostError(f"its process has ended: {how.text}")
        return answer.result()
    finally:
        waiting.cancel()
        host.kill()
        await host.wait(_LAST_WORDS_S)
        host.close()
        await asyncio.to_thread(remove_code_folder, folder)
