"""Calls the user's own `kubectl`, which knows every context and every way to log in."""

import asyncio
import os
import re
from collections.abc import Sequence
from typing import Any

from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.process.environment import drop_own, find_program
from oku_core.errors import UserError
from oku_core.json_reader import JsonError, decode_document

TIMEOUT_S = 20.0
_LAST_LINES = 6
_LOG_HEAD = re.compile(r"^[IWEF]\d{4} .*?\] ")
_LOGGED = re.compile(rf"{_LOG_HEAD.pattern}|^\t|^ >$")
"""Lines of kubectl's own log, which repeats an error several times before kubectl reports it for people."""
_MISTAKES = re.compile(
    r"error in configuration|invalid configuration|error loading config file"
    r'|(context|cluster|auth info) "[^"]*" does not exist|context was not found'
    r"|unable to read (certificate-authority|client-cert|client-key)|unable to load root certificates"
    r"|executable \S+ not found|auth plugin has been removed|no auth provider found"
    r"|\((forbidden|unauthorized|badrequest|notfound)\)|is forbidden:|must be logged in|provide credentials"
    r"|invalid namespace",
    re.IGNORECASE,
)
"""Mistakes that only the user can fix, in kubectl's words; other errors may be temporary."""


class Kubectl:
    """Calls `kubectl` with a context and a namespace, or its current ones; `UserError` without `kubectl`."""

    def __init__(self, context: str, namespace: str) -> None:
        program = find_program("kubectl")
        if program is None:
            raise UserError("--kube: kubectl is not on the PATH; install it, or name a --coordinator")
        self._program = program
        self._context = ["--context", context] if context else []
        self._namespace = ["--namespace", namespace] if namespace else []

    def build_command(self, *arguments: str) -> list[str]:
        """Build the command line of a call."""
        return [self._program, *self._context, *self._namespace, *arguments]

    async def fetch(self, kind: str, selector: str, *flags: str) -> list[dict[str, Any]]:
        """Fetch the objects of a kind with these labels.

        Raises:
            UserError: there is no such context, or no right to see them.
            UnreachableError: the cluster does not answer.
        """
        document = await self._get(kind, "--selector", selector, "--output", "json", *flags)
        items = document.get("items")
        if not isinstance(items, list):
            raise UnreachableError("--kube: kubectl did not print a list of objects")
        return items

    async def fetch_one(self, kind: str, name: str) -> dict[str, Any]:
        """Fetch one object by its name; what `fetch` raises, and `UserError` if there is none."""
        return await self._get(f"{kind}/{name}", "--output", "json")

    async def _get(self, *arguments: str) -> dict[str, Any]:
        code, output, error = await _call(self.build_command("--request-timeout=10s", "get", *arguments))
        if code:
            raise await self._explain(find_reason(error))
        try:
            document = decode_document(output)
        except JsonError:
            document = None
        if not isinstance(document, dict):
            raise UnreachableError("--kube: kubectl did not print an object")
        return document

    async def _explain(self, reason: str) -> Exception:
        if is_mistake(reason):
            return UserError(f"--kube: {reason}")
        if not self._context:
            code, _, _ = await _call([self._program, "config", "current-context"])
            if code:
                return UserError(
                    f"--kube: there is no current kube context, name one by --context (kubectl: {reason})"
                )
        return UnreachableError(f"--kube: the cluster does not answer: {reason}")


def find_reason(error: str) -> str:
    """Return kubectl's message on standard error in one line."""
    lines = [line for line in error.splitlines() if line.strip()]
    said = [line for line in lines if not _LOGGED.search(line)] or lines[-1:]
    text = " ".join(line.strip() for line in said[-_LAST_LINES:])
    return _LOG_HEAD.sub("", text).removeprefix("error: ") or "kubectl gave no reason"


def is_mistake(reason: str) -> bool:
    """Return whether only the user can fix this error."""
    return _MISTAKES.search(reason) is not None


async def _call(command: Sequence[str]) -> tuple[int, bytes, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=drop_own(os.environ),
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, error = await process.communicate()
    except TimeoutError:
        return 1, b"", f"no answer within {TIMEOUT_S:.0f} s"
    finally:
        if process.returncode is None:  # too late, or the caller was cancelled
            process.kill()
            await process.wait()
    return process.returncode or 0, output, error.decode(errors="replace")
