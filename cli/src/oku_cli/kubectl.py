"""Calls of `kubectl`, which users of a cluster have: it knows their contexts and every way to log in."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from typing import Any

from oku_cli.client import UnreachableError
from oku_core.errors import UserError

_TIMEOUT_S = 20.0
_MISTAKES = ("context", "forbidden", "kubeconfig", "unauthorized", "configuration", "logged in")
"""Words of what only the user can put right; the rest may pass."""


class Kubectl:
    """`kubectl` with the context and namespace that were given. `UserError` when there is none.

    Args:
        context: of kubectl's configuration; empty for the current one.
        namespace: empty for that of the context.
    """

    def __init__(self, context: str, namespace: str) -> None:
        program = shutil.which("kubectl")
        if program is None:
            raise UserError("--kube: kubectl is not on the PATH; install it, or name a --coordinator")
        self._program = program
        self._context = ["--context", context] if context else []
        self._namespace = ["--namespace", namespace] if namespace else []

    def build_command(self, *arguments: str) -> list[str]:
        """The command line of a call."""
        return [self._program, *self._context, *self._namespace, *arguments]

    async def fetch(self, kind: str, selector: str, *flags: str) -> list[dict[str, Any]]:
        """The objects of a kind with these labels.

        Raises:
            UserError: there is no such context, or no right to see them.
            UnreachableError: the cluster does not answer.
        """
        arguments = ("get", kind, "--selector", selector, "--output", "json", *flags)
        code, output, error = await _call(self.build_command("--request-timeout=10s", *arguments))
        if code:
            raise await self._explain(_find_reason(error))
        items: list[dict[str, Any]] = json.loads(output)["items"]
        return items

    async def _explain(self, reason: str) -> Exception:
        if not self._context:
            code, _, _ = await _call([self._program, "config", "current-context"])
            if code:
                return UserError(
                    f"--kube: there is no current kube context, name one by --context (kubectl: {reason})"
                )
        if any(word in reason.lower() for word in _MISTAKES):
            return UserError(f"--kube: {reason}")
        return UnreachableError(f"--kube: the cluster does not answer: {reason}")


async def _call(command: Sequence[str]) -> tuple[int, bytes, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            output, error = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 1, b"", f"no answer within {_TIMEOUT_S:.0f} s"
    return process.returncode or 0, output, error.decode(errors="replace")


def _find_reason(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else "kubectl gave no reason"
