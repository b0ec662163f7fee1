"""Calls the coordinator's HTTP API, in the same way for a local stack, a server and a cluster."""

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from oku_cli.backends.coordinator_ref import CoordinatorRef, UnreachableError
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.results.run_api import IDEMPOTENCY_KEY_HEADER, RunRows, quote_idempotency_key
from oku_core.spec.engine_choice import EngineChoice
from oku_core.spec.spec import Engine
from oku_core.spec.values.file_reference import PROOF_HEADER, PROOFS, FileClaim
from oku_core.summary.summary import Summary
from oku_core.summary.tick import Tick

if TYPE_CHECKING:
    import aiohttp

    from oku_core.results.failure_filter import FailureFilter

_T = TypeVar("_T")

_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 10, 30
_STREAM_LIMIT = 1 << 25
_MOST_LISTED = 1000
"""Runs of one answer; a coordinator gives no more."""
_CHECK_TIMEOUT_S = 600
_READINESS_TIMEOUT_S = 2.0


class FileStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a coordinator has of a file.

    Attributes:
        is_complete: whether that is all of it, and checked.
    """

    digest: str
    received: int
    is_complete: bool


class BegunRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a call has changed: its state now, and the engine that the coordinator has chosen for it."""

    run: str
    state: RunState
    engine: Engine
    engine_reason: str = ""

    @property
    def engine_choice(self) -> EngineChoice:
        """Its engine with the reason."""
        return EngineChoice(self.engine, self.engine_reason)


class Submitted(NamedTuple):
    """A run that was submitted: by this call if it is new, else by another one with the same key."""

    begun: BegunRun
    is_new: bool


class _Error(msgspec.Struct):
    """The answer of a call that fails."""

    error: str


class _DeletedRun(msgspec.Struct):
    """The answer about the run of a key that was deleted."""

    error: str
    summary: Summary


_RUN: JsonDecoder[BegunRun] = JsonDecoder(BegunRun)
_RUNS: JsonDecoder[list[dict[str, Any]]] = JsonDecoder(list[dict[str, Any]])
_FILE: JsonDecoder[FileStatus] = JsonDecoder(FileStatus)
_SUMMARY: JsonDecoder[Summary] = JsonDecoder(Summary)
_TICK: JsonDecoder[Tick] = JsonDecoder(Tick)
_ROWS: JsonDecoder[RunRows] = JsonDecoder(RunRows)
_OBJECT: JsonDecoder[dict[str, Any] | None] = JsonDecoder(dict[str, Any] | None)
_ERROR: JsonDecoder[_Error] = JsonDecoder(_Error)
_DELETED: JsonDecoder[_DeletedRun] = JsonDecoder(_DeletedRun)


class WrongDigestError(UserError):
    """The uploaded content does not have its digest."""


class ConflictError(UserError):
    """The state of what a call is about does not permit it."""


class UploadNeededError(UserError):
    """A file of the spec has to be uploaded before it is submitted."""


class RunGoneError(UserError):
    """The run that was submitted with a key was deleted; the summary is how it stood then."""

    def __init__(self, message: str, summary: Summary) -> None:
        super().__init__(message)
        self.summary = summary


class Client:
    """Calls the API. A response that blames the caller is raised as a `UserError` of one line."""

    def __init__(self, coordinator: CoordinatorRef) -> None:
        self._coordinator = coordinator
        self._opened = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Find the address of the coordinator and open a session."""
        import aiohttp  # noqa: PLC0415  # it takes long to load, and many commands do without

        self._address = await self._opened.enter_async_context(self._coordinator.open())
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._address.token}"},
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=_READ_TIMEOUT_S
            ),
            read_bufsize=_STREAM_LIMIT,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the session and the way to the coordinator."""
        if self._session is not None:
            await self._session.close()
        await self._opened.aclose()

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name the coordinator in a command."""
        return self._coordinator.flags

    @property
    def place(self) -> str:
        """The URL of the coordinator."""
        return self._address.url

    async def submit(self, values: Mapping[str, Any], files: Iterable[FileClaim] = ()) -> BegunRun:
        """Submit a spec, with the proof that its files are ours, and return its run."""
        return (await self.submit_once(values, files)).begun

    async def submit_once(
        self, values: Mapping[str, Any], files: Iterable[FileClaim], key: str | None = None
    ) -> Submitted:
        """Submit a spec unless a run has the key; return the new run, or the one that has it.

        Raises:
            UploadNeededError: a file is not there yet.
            RunGoneError: the run that has the key was deleted.
        """
        headers = {} if key is None else {IDEMPOTENCY_KEY_HEADER: quote_idempotency_key(key)}
        proven = {**values, PROOFS: dict(files)}
        async with self._request("POST", "/api/runs", json=proven, headers=headers) as response:
            run = await _decode(response, _RUN)
            return Submitted(run, response.status == HTTPStatus.CREATED)

    async def fetch_file(self, file: FileClaim) -> FileStatus:
        """Fetch what the coordinator has of a file."""
        return await self._call("GET", f"/api/files/{file.digest}", _FILE, headers={PROOF_HEADER: file.proof})

    async def send_piece(self, file: FileClaim, size: int, offset: int, piece: bytes) -> FileStatus:
        """Send a piece of a file of this size, and return how much the coordinator has of it then.

        Raises:
            WrongDigestError: it has all of the file now, and the digest is wrong.
        """
        import aiohttp  # noqa: PLC0415

        query = urlencode({"size": size, "offset": offset})
        # With the last piece, the coordinator reads all of the file.
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=_CHECK_TIMEOUT_S
        )
        try:
            return await self._call(
                "PUT",
                f"/api/files/{file.digest}?{query}",
                _FILE,
                data=io.BytesIO(piece),
                headers={PROOF_HEADER: file.proof},
                timeout=timeout,
            )
        except ConflictError:
            return await self.fetch_file(file)  # another command has sent a piece meanwhile

    async def retry(self, run: str, only: "FailureFilter") -> BegunRun:
        """Submit a run over these failed requests of another one, and return it."""
        single = {"outcome": only.outcome, "target": only.target}
        given = {key: value for key, value in single.items() if value is not None}
        query = urlencode(given | {"reason": only.reasons}, doseq=True)
        return await self._call("POST", f"/api/runs/{run}/retry?{query}", _RUN)

    async def fetch_outbox(self) -> dict[str, Any]:
        """Fetch the state of the outbox of a coordinator that has a Loki."""
        return await self._call("GET", "/api/outbox", _OBJECT) or {}

    async def fetch_scaling(self) -> dict[str, Any] | None:
        """Fetch how many pods a run may have; None outside a cluster."""
        return await self._call("GET", "/api/scaling", _OBJECT)

    async def fetch_runs(self, most: int | None = None, reference: str | None = None) -> list[dict[str, Any]]:
        """Fetch runs as the API lists them, newest first: all, at most `most`, or what a reference means."""
        runs: list[dict[str, Any]] = []
        size = _MOST_LISTED if most is None else min(most, _MOST_LISTED)
        query = {"limit": size} if reference is None else {"limit": size, "run": reference}
        path = f"/api/runs?{urlencode(query)}"
        while path and (most is None or len(runs) < most):
            async with self._request("GET", path) as response:
                page = await _decode(response, _RUNS)
                runs += page
                following = response.links.get("next")
                path = _cut_path(str(following["url"])) if following else ""
        return runs[:most]

    async def fetch_summary(self, run: str) -> Summary:
        """Fetch the summary of a run as it stands."""
        return await self._call("GET", f"/api/runs/{run}", _SUMMARY)

    async def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """Yield the history of a run line by line, without line ends; there may be millions of lines."""
        async for line in self._read_lines(f"/api/runs/{run}/history"):
            yield line

    async def read_failures(self, run: str) -> AsyncGenerator[bytes]:
        """Yield the failed requests of a run line by line, without line ends."""
        async for line in self._read_lines(f"/api/runs/{run}/failures"):
            yield line

    async def fetch_rows(self, run: str, start: int, stop: int) -> RunRows:
        """Fetch the rows of the data of a run for the indices `start <= i < stop`, at most `MOST_ROWS`."""
        query = urlencode({"start": start, "stop": stop})
        return await self._call("GET", f"/api/runs/{run}/rows?{query}", _ROWS)

    async def fetch_run_file(self, run: str, digest: str) -> bytes:
        """Fetch a file of a run, which fits into memory."""
        async with self._request("GET", f"/api/runs/{run}/files/{digest}") as response:
            return await response.read()

    async def _read_lines(self, path: str) -> AsyncGenerator[bytes]:
        begun: list[bytes] = []
        async with self._request("GET", path) as response:
            async for piece in response.content.iter_any():
                end, *others = piece.split(b"\n")
                begun.append(end)
                for begin in others:
                    yield b"".join(begun)
                    begun = [begin]

    async def pause(self, run: str) -> RunState:
        """Ask a run to pause; return its state now."""
        return (await self._act(run, "pause")).state

    async def resume(self, run: str) -> BegunRun:
        """Resume a run, and return it."""
        return await self._act(run, "resume")

    async def cancel(self, run: str, *, at_once: bool = False) -> RunState:
        """End a run for good, and at once drop its requests in flight if asked to; return its state now."""
        return (await self._act(run, "cancel?now=true" if at_once else "cancel")).state

    async def delete(self, run: str) -> None:
        """Delete a run that has ended or is paused."""
        async with self._request("DELETE", f"/api/runs/{run}"):
            pass

    async def find_obstacle(self) -> str:
        """Ask the coordinator why it is not ready; empty if it is."""
        import aiohttp  # noqa: PLC0415

        timeout = aiohttp.ClientTimeout(total=_READINESS_TIMEOUT_S)
        try:
            async with self._open().get(f"{self._address.url}/readyz", timeout=timeout) as response:
                is_unready = response.status == HTTPStatus.SERVICE_UNAVAILABLE
                return (await response.text()).strip() if is_unready else ""
        except (aiohttp.ClientError, TimeoutError) as error:
            return str(self._unreachable(error))

    async def follow(self, run: str) -> AsyncIterator[Tick | Summary]:
        """Yield the ticks of a run and, when it has come to rest, its summary."""
        async with self._request("GET", f"/api/runs/{run}/ticks") as response:
            async for event, data in _read_events(response.content):
                if event == "tick":
                    yield _TICK.decode(data)
                elif event == "end":
                    yield _SUMMARY.decode(data)

    async def _act(self, run: str, action: str) -> BegunRun:
        return await self._call("POST", f"/api/runs/{run}/{action}", _RUN)

    async def _call(self, method: str, path: str, decoder: JsonDecoder[_T], **arguments: Any) -> _T:
        async with self._request(method, path, **arguments) as response:
            return await _decode(response, decoder)

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, **arguments: Any
    ) -> "AsyncGenerator[aiohttp.ClientResponse]":
        """Yield the response to a call that succeeded; `UnreachableError` if it breaks off."""
        import aiohttp  # noqa: PLC0415

        try:
            async with self._open().request(method, f"{self._address.url}{path}", **arguments) as response:
                await self._check(response)
                yield response
        except aiohttp.InvalidURL:
            raise UserError(
                f"--coordinator: {self._address.url} is not a URL such as http://127.0.0.1:8700"
            ) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unreachable(error) from error

    def _open(self) -> "aiohttp.ClientSession":
        if self._session is None:
            raise RuntimeError("the client is not open")
        return self._session

    def _unreachable(self, error: Exception) -> UnreachableError:
        reason = self._address.find_trouble() or str(error) or type(error).__name__
        return UnreachableError(f"{self._address.url}: the coordinator does not answer: {reason}")

    async def _check(self, response: "aiohttp.ClientResponse") -> None:
        if response.status < 400:
            return
        if response.status == HTTPStatus.GONE:
            deleted = await _decode(response, _DELETED)
            raise RunGoneError(deleted.error, deleted.summary)
        message = await _read_error(response)
        if response.status == HTTPStatus.FAILED_DEPENDENCY:
            raise UploadNeededError(message)
        if response.status == HTTPStatus.CONFLICT:
            raise ConflictError(message)
        if response.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            raise WrongDigestError(message)
        if response.status >= 500 and response.status != HTTPStatus.INSUFFICIENT_STORAGE:
            raise UnreachableError(message)
        note = self._address.token_note if response.status == HTTPStatus.UNAUTHORIZED else ""
        raise UserError(f"{message}: {note}" if note else message)


def _cut_path(url: str) -> str:
    """Return path and query of a URL: a coordinator may not know the name by which it was reached."""
    return urlsplit(url)._replace(scheme="", netloc="").geturl()


async def _decode(response: "aiohttp.ClientResponse", decoder: JsonDecoder[_T]) -> _T:
    try:
        return decoder.decode(await response.read())
    except JsonError as error:
        raise UserError(f"{response.url}: this version of oku cannot read the answer: {error}") from error


async def _read_error(response: "aiohttp.ClientResponse") -> str:
    try:
        return _ERROR.decode(await response.read()).error
    except JsonError:
        return f"{response.url} answers {response.status}: this is not a coordinator of Oku"


async def _read_events(stream: "aiohttp.StreamReader") -> AsyncIterator[tuple[str, bytes]]:
    """Yield server-sent events as pairs of name and data (WHATWG HTML, section 9.2)."""
    event, data = "message", b""
    async for line in stream:
        text = line.rstrip(b"\r\n")
        if not text:
            yield event, data
            event, data = "message", b""
        elif text.startswith(b"event: "):
            event = text[7:].decode()
        elif text.startswith(b"data: "):
            data += text[6:]


async def wait_before_retry() -> None:
    """Wait before an unreachable coordinator is asked again."""
    await asyncio.sleep(0.2)
