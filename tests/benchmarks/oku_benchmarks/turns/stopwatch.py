"""Times a command in a terminal of its own, as the person sees it who typed it.

Out comes when its first request reached the target, when the result stood on the screen, and when the prompt
was back.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.target import Target
from oku_cli.process.child import DIE_WITH_PARENT

_LOOK_S = 0.005
_TIMEOUT_S = 60.0
_ROWS, _COLUMNS = 50, 120
_KEPT_BYTES = 1 << 16
_ESCAPE_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is typed, and where.

    Args:
        words: the program and its arguments.
        folder: the working directory.
        environment: the complete environment.
        result: text that the screen shows with the result and not before.
    """

    words: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    result: str


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds since the command was typed; None for what did not happen."""

    first_request_s: float | None
    result_s: float | None
    prompt_s: float
    exit_code: int
    requests: int
    """That reached the target."""


def time_command(command: Command, target: Target) -> Timing:
    """Run a command to its end; `BenchmarkError` when it takes longer than a minute."""
    terminal, other_side = pty.openpty()
    fcntl.ioctl(other_side, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    before = target.read_served()
    began = time.monotonic()
    process = subprocess.Popen(
        [*DIE_WITH_PARENT, str(os.getpid()), *command.words],
        stdin=other_side,
        stdout=other_side,
        stderr=other_side,
        cwd=command.folder,
        env=command.environment,
        start_new_session=True,
    )
    os.close(other_side)
    first_request_s = result_s = None
    shown = b""
    try:
        while True:
            code = process.poll()
            now_s = time.monotonic() - began
            if first_request_s is None and target.read_served() > before:
                first_request_s = now_s
            written = _read(terminal)
            shown = (shown + written)[-_KEPT_BYTES:]
            if result_s is None and command.result.encode() in _ESCAPE_SEQUENCE.sub(b"", shown):
                result_s = now_s
            if code is not None and not written:
                break
            if now_s > _TIMEOUT_S:
                raise BenchmarkError(f"{command.words[0]} did not end within {_TIMEOUT_S:.0f} s")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return Timing(
        first_request_s=_round(first_request_s),
        result_s=_round(result_s),
        prompt_s=round(now_s, 2),
        exit_code=code,
        requests=target.read_served() - before,
    )


def _read(terminal: int) -> bytes:
    """What a command has written, waiting for it a little."""
    ready, _, _ = select.select([terminal], [], [], _LOOK_S)
    if not ready:
        return b""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""  # how a terminal without a process on its other side ends on Linux


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
