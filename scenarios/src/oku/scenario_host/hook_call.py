"""Calls a hook of a scenario: `setup` or `teardown`, a function or a coroutine function."""

import asyncio
import inspect
import json
import os
import socket
from collections.abc import Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvloop

from oku.sandbox.user_module import LoadError, describe_exception, format_traceback, load_module
from oku.scenario_host.http_factory import open_http
from oku.scenario_host.scenario import UserFunction, find_arguments
from oku.scenario_host.unawaited import UnawaitedError, explain_unawaited
from oku_core.json_reader import decode_json
from oku_core.messaging.hook import MOST_RESULT_BYTES
from oku_core.spec.spec import ARGUMENTS, Hook, decode_spec
from oku_core.user_code.messages import Call, Returned, frame


def serve_call(connection: socket.socket, call: Call) -> None:
    """Call a hook, and send the worker its result.

    The result is sent before tasks that the hook has left behind are cancelled: they may resist.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        connection.sendall(frame(call_hook(call, runner)))


def call_hook(call: Call, runner: asyncio.Runner) -> Returned:
    """Call a hook; an exception becomes a part of the result."""
    spec, folder = decode_spec(call.spec), Path(os.fsdecode(call.folder))
    assert spec.scenario is not None
    try:
        module = load_module(folder, spec.scenario.path)
        function = getattr(module, call.hook, None)
        if not callable(function):
            raise LoadError(f"{spec.scenario.path} has no function {call.hook}")
        wanted = find_arguments(function, ARGUMENTS[call.hook], spec.scenario.path)
    except LoadError as error:
        return Returned(error=str(error))
    main = folder / spec.scenario.path
    try:
        value = runner.run(_await(function, wanted, call, main))
    except UnawaitedError as error:
        return Returned(error=str(error))
    except BaseException as error:  # noqa: BLE001  # any error of user code is reported
        return Returned(error=describe_exception(error, folder), traceback=format_traceback(error, folder))
    return encode_result(value, call.hook)


async def _await(function: UserFunction, wanted: Collection[str], call: Call, main: Path) -> object:
    async with AsyncExitStack() as stack:
        arguments = await build_arguments(wanted, call, stack)
        value = function(**arguments)
        result = await value if inspect.isawaitable(value) else value
        http = arguments.get("http")
        if http is not None and (reason := explain_unawaited(http.calls, main)):
            raise UnawaitedError(reason)
        return result


async def build_arguments(wanted: Collection[str], call: Call, stack: AsyncExitStack) -> dict[str, Any]:
    """What a hook is called with: those of the arguments that there are that it wants.

    Args:
        wanted: their names.
        call: what the worker has said.
        stack: closes the client after the call.
    """
    arguments: dict[str, Any] = {}
    if "setup_data" in wanted:
        arguments["setup_data"] = decode_json(call.setup_data)
    if "http" in wanted:
        arguments["http"] = await stack.enter_async_context(open_http(call))
    return arguments


def encode_result(value: object, hook: str) -> Returned:
    """Encode the result of a hook as JSON; a teardown's is dropped."""
    if hook == Hook.TEARDOWN:
        return Returned()
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        size = len(text.encode())
        decode_json(text)  # every worker will have to do so
    except (TypeError, ValueError, RecursionError) as error:
        return Returned(error=f"it returned what JSON cannot hold: {error}")
    if size > MOST_RESULT_BYTES:
        return Returned(error=f"it returned {size:,} bytes of JSON, and {MOST_RESULT_BYTES:,} is the most")
    return Returned(text)
