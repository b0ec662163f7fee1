"""The messages between a worker and its host: the child process that runs user code.

They go over a socket pair, as MessagePack behind their length. The worker hands out iterations, each with a
slot; the host requests more, and reports the result of each. Which iterations have begun
stands in shared memory (`oku_core.user_code.slots`), for the host may be killed at any time.
"""

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

_LENGTH = struct.Struct(">I")
MOST_BYTES = 64 << 20
"""The longest message; both ends are ours, so a longer one is a defect."""

MOST_AHEAD = 10_000
"""How many more iterations than users a host may ask for."""

HIGHEST_FIGURE = 1 << 48
"""The most microseconds and bytes: no request takes as long, and no response is as large."""
HIGHEST_STATUS = 999

NO_TEXT = -1
"""Stands for a text where there is none, such as the reason of a request that was ok."""
OUTSIDE = -1
"""The slot of requests that were made outside of any iteration."""
DROPPED = -1
"""In the place of an outcome: the iteration was cut off after it had begun."""
UNTOUCHED = -2
"""In the place of an outcome: the iteration was cut off before it had begun."""


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start", array_like=True):
    """Load the user code, and begin to ask for iterations; the first message.

    Attributes:
        spec: the spec as JSON, with its secrets.
        folder: where the files of the user code are, which is the working directory of the host; like the
            paths, in the bytes of the file system.
        users: how many iterations may be under way.
        is_ahead: whether some more may be handed out than can begin at once.
        paths: where the files are that the spec names, by their digests.
        setup_data: what `setup` returned, as JSON.
        local_address: what to send from; the system chooses unless given.
        secrets: what no text of this host may show.
        is_confined: whether the host is to give up all files but its own first.
    """

    spec: bytes
    folder: bytes
    users: int
    is_ahead: bool
    paths: dict[str, bytes] = {}
    setup_data: str = "null"
    local_address: str | None = None
    secrets: tuple[str, ...] = ()
    is_confined: bool = False


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call", array_like=True):
    """Load the user code, call a hook of it and end; the first message, instead of `Start`.

    Attributes:
        hook: `setup` or `teardown`.
        spec: as in `Start`; as are the following.
    """

    hook: str
    spec: bytes
    folder: bytes
    paths: dict[str, bytes] = {}
    setup_data: str = "null"
    secrets: tuple[str, ...] = ()
    is_confined: bool = False


class Hand(msgspec.Struct, frozen=True, tag="hand", array_like=True):
    """Carry out these iterations.

    Attributes:
        iterations: slot, index and due time of each, one after the other. The due time is in nanoseconds of
            the monotonic clock, 0 without one.
    """

    iterations: list[int]


class SetUsers(msgspec.Struct, frozen=True, tag="users", array_like=True):
    """Set how many iterations may be under way."""

    users: int


class Cut(msgspec.Struct, frozen=True, tag="cut", array_like=True):
    """Cut off the iterations in these slots, and report each of them."""

    slots: list[int]


class StopHost(msgspec.Struct, frozen=True, tag="stop", array_like=True):
    """End: nothing more is handed out, and iterations under way are dropped."""


ToHost = Start | Call | Hand | SetUsers | Cut | StopHost


class Ready(msgspec.Struct, frozen=True, tag="ready", array_like=True):
    """The user code is loaded.

    Attributes:
        has_farewell: whether its users may make requests when they stop.
    """

    has_farewell: bool = False


class Deserted(msgspec.Struct, frozen=True, tag="deserted", array_like=True):
    """No user is left, as was asked for, and all that the last ones have done was reported."""


class Refused(msgspec.Struct, frozen=True, tag="refused", array_like=True):
    """The user code cannot be run.

    Attributes:
        reason: why, in one line.
    """

    reason: str


class Leaving(msgspec.Struct, frozen=True, tag="leaving", array_like=True):
    """The last message of a host that ends unexpectedly.

    Attributes:
        text: why, in one line that calls the host "it".
        is_memory: whether it ran out of memory.
    """

    text: str
    is_memory: bool = False


class Returned(msgspec.Struct, frozen=True, tag="returned", array_like=True):
    """A hook has ended.

    Attributes:
        value: what it returned, as JSON.
        error: why it failed, in one line; empty if it did not.
        traceback: where it failed.
    """

    value: str = "null"
    error: str = ""
    traceback: str = ""


class Report(msgspec.Struct, frozen=True, tag="report", array_like=True):
    """The news since the last report; also without news, as a sign of life.

    Texts are named by their numbers: the first text of the first report is 0, and so on.

    Attributes:
        wanted: how many more iterations are wanted.
        texts: those that are new.
        tracebacks: of exceptions, by the number of their reason.
        requests: for each request that has ended: slot (or `OUTSIDE`), name, outcome, status (0 without one),
            microseconds, bytes received, reason (or `NO_TEXT`); one after the other.
        cpu_us: the processor time of the host so far.
        busy_us: the same, and how long it waited for a processor.
        late_us: how late its event loop was at the worst since the last report.
        idle: how many users could begin an iteration now and have none.
        users: how many there are, with those that stop after their iteration, or how many are wanted.
        changes: how many `SetUsers` have come.
        ended: for each iteration that has ended: slot, outcome (or `DROPPED`, `UNTOUCHED`), when it began, in
            nanoseconds of the monotonic clock, microseconds, reason (or `NO_TEXT`); one after the other.
    """

    wanted: int = 0
    texts: list[str] = []
    tracebacks: dict[int, str] = {}
    requests: list[int] = []
    ended: list[int] = []
    cpu_us: int = 0
    busy_us: int = 0
    late_us: int = 0
    idle: int = 0
    users: int = 0
    changes: int = 0


REQUEST_FIELDS, ENDED_FIELDS, HANDED_FIELDS = 7, 5, 3
"""How many numbers stand for one request, one iteration that has ended, and one that is handed out."""

FromHost = Ready | Refused | Leaving | Returned | Report | Deserted


def frame(message: ToHost | FromHost) -> bytes:
    """Write a message with its length before it; what UTF-8 cannot encode in its texts is escaped."""
    try:
        content = msgspec.msgpack.encode(message)
    except UnicodeEncodeError:  # of user code, such as the name of a file that is not UTF-8 in an exception
        content = msgspec.msgpack.encode(_escape(msgspec.to_builtins(message, builtin_types=(bytes,))))
    return _LENGTH.pack(len(content)) + content


def _escape(value: Any) -> Any:
    """The same with texts that can be encoded."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, (list, tuple)):
        return [_escape(each) for each in value]
    if isinstance(value, dict):
        return {_escape(key): _escape(each) for key, each in value.items()}
    return value


class FrameReader:
    """Cuts the bytes of a stream into messages."""

    def __init__(self, kind: object) -> None:
        self._decoder: msgspec.msgpack.Decoder[object] = msgspec.msgpack.Decoder(kind)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[object]:
        """Yield the messages that are complete with these bytes.

        Raises:
            ValueError: this is not a message.
        """
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer)
            if length > MOST_BYTES:
                raise ValueError(f"a message has {length} bytes")
            stop = _LENGTH.size + length
            if len(buffer) < stop:
                return
            content = bytes(memoryview(buffer)[_LENGTH.size : stop])
            del buffer[:stop]
            try:
                message = self._decoder.decode(content)
            except RecursionError as error:
                raise ValueError("a message is nested too deep") from error
            yield message
