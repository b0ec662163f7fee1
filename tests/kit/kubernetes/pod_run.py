"""A run over the pods of a release, which goes on while they are hurt."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.kit.kubernetes.forward import ForwardedApi
from tests.kit.kubernetes.release import Release
from tests.kit.runs.local_run import wait_until

from oku_cli.exit_code import ExitCode
from oku_core.accounting.lease_state import LeaseState
from oku_core.results.event import EventType

_STEP = 2000
"""Requests that show that a run goes on."""
_PATIENCE_S = 90.0
_LOOK_S = 0.2
_LOST_S = 30.0


class PodRun:
    """One run, the command that follows it, and what the API tells of it meanwhile.

    Args:
        release: the release that runs it.
        api: of its coordinator.
        folder: for the summary.
    """

    def __init__(self, release: Release, api: ForwardedApi, folder: Path) -> None:
        self.release = release
        self.api = api
        self.run = ""
        self._path = folder / "summary.json"
        self._command: subprocess.Popen[str] | None = None

    def start(self, *flags: str) -> None:
        """Start it, and wait until its first requests are accounted."""
        before = {each["run"] for each in self.api.list_runs()}
        self._begin("run", *flags)
        self._wait(lambda: self._has_ended() or len(self.api.list_runs()) > len(before), "it is submitted")
        assert not self._has_ended(), self._read_errors()
        [self.run] = [each["run"] for each in self.api.list_runs() if each["run"] not in before]
        self._wait(lambda: bool(self.summary["accounted"]), "requests are accounted")

    def pause(self) -> dict[str, Any]:
        """Pause it, by another command; the one that follows it ends. Its summary."""
        self.release.oku("pause", self.run)
        return self.wait_for_end(_PATIENCE_S, ExitCode.CUT_SHORT)

    def resume(self) -> None:
        """Go on with it, by a command that follows it."""
        self._begin("resume", self.run)
        self.api.wait_for_state(self.run, "running", _PATIENCE_S)

    def end(self) -> None:
        """Cancel what is left of it."""
        if self._command is not None and self._command.poll() is None:
            self.api.call("POST", f"/api/runs/{self.run}/cancel")
            self._command.terminate()
            self._command.communicate()

    def _has_ended(self) -> bool:
        return self._command is not None and self._command.poll() is not None

    def _read_errors(self) -> str:
        assert self._command is not None
        return self._command.communicate()[1]

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, _PATIENCE_S, what, _LOOK_S)

    def _begin(self, *arguments: str) -> None:
        self._path.unlink(missing_ok=True)
        command = self.release.build_oku(*arguments, "--quiet", "--summary-json", str(self._path))
        self._command = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    @property
    def summary(self) -> dict[str, Any]:
        """How it stands."""
        return self.api.summary(self.run)

    def fetch_active_leases(self) -> list[dict[str, Any]]:
        """The leases that are out; `worker` is null where none has begun with it."""
        return [lease for lease in self._fetch_history()["leases"] if lease["state"] == LeaseState.ACTIVE]

    def measure_active(self) -> dict[tuple[float, int], int]:
        """Their requests, by when they were cut and where they start."""
        return {
            (lease["cut_at"], lease["start"]): lease["stop"] - lease["start"]
            for lease in self.fetch_active_leases()
        }

    def _fetch_history(self) -> dict[str, Any]:
        status, history = self.api.call("GET", f"/api/runs/{self.run}/history")
        assert status == HTTPStatus.OK
        found: dict[str, Any] = history
        return found

    def wait_for_progress(self) -> None:
        """Wait until it has gone on by some thousand requests."""
        before = self.summary
        assert before["state"] == "running", f"the run is {before['state']}: it has to be longer"
        self.wait_for_accounted(before["accounted"] + _STEP)

    def wait_for_accounted(self, requests: int) -> None:
        """Wait until so many are accounted."""

        def are_accounted() -> bool:
            summary = self.summary
            if summary["accounted"] >= requests:
                return True
            assert not self._has_ended(), f"the run is {summary['state']}: it has to be longer"
            return False

        self._wait(are_accounted, f"{requests:,} are accounted")

    @contextmanager
    def hurting(self, *, may_resend: bool = False) -> Iterator[None]:
        """What happens in the block, while the run goes on before and after.

        Args:
            may_resend: whether what is active may be sent again because of it; nothing else may. Some of it
                is missed only after a while, so that all leases that were out have to end first.
        """
        self.wait_for_progress()
        active, before = self.measure_active(), self.summary["resent_at_most"]
        yield
        self.wait_for_progress()
        if may_resend:
            out = self.measure_active().keys()
            self._wait(lambda: not out & self.measure_active().keys(), "the leases that were out have ended")
        again, most = self.summary["resent_at_most"] - before, sum(active.values()) if may_resend else 0
        assert again <= most, f"{again} may be sent twice of {active}: {self._list_expired()}"

    def _list_expired(self) -> list[str]:
        """What the run's history says of leases that expired, with when."""
        events = self._fetch_history()["events"]
        return [
            f"{each['at']:.1f} {each['text']}" for each in events if each["type"] == EventType.LEASE_EXPIRED
        ]

    def find_worker(self) -> str:
        """A ready pod that has a lease, waited for."""

        def find_all() -> list[str]:
            busy = {lease["worker"] for lease in self.fetch_active_leases()}
            return [pod for pod in self.release.list_ready("workers") if pod in busy]

        self._wait(lambda: bool(find_all()), "a worker is busy")
        return find_all()[0]

    def is_lost_soon(self, worker: str) -> bool:
        """Whether the coordinator declares an absent worker dead, which it does after the worker timeout."""
        deadline = time.monotonic() + _LOST_S
        while time.monotonic() < deadline:
            if any(each["name"] == worker and each["lost"] for each in self.summary["workers"]):
                return True
            time.sleep(_LOOK_S)
        return False

    def wait_for_end(self, timeout_s: float, code: ExitCode = ExitCode.COMPLETED) -> dict[str, Any]:
        """Wait until the command has ended, with this exit code; the summary that it has written."""
        assert self._command is not None
        _, errors = self._command.communicate(timeout=timeout_s)
        assert self._command.returncode == code, errors
        summary: dict[str, Any] = json.loads(self._path.read_text())
        return summary


@contextmanager
def start_pod_run(release: Release, folder: Path, *flags: str) -> Iterator[PodRun]:
    """Start a run of which the first requests are accounted; it is cancelled after the block."""
    with release.open_api() as api:
        run = PodRun(release, api, folder)
        try:
            run.start(*flags)
            yield run
        finally:
            run.end()
