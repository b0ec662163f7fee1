"""What `oku resume` and `oku retry` share: they send requests of a run that exists already."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import msgspec

from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.run_backend import find_coordinator, find_run
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.follow.run_start import RunStart, refuse_shape, run_remotely
from oku_cli.follow.watch import Watch
from oku_cli.local.local_run import build_plan, run_locally
from oku_cli.options.backend_options import backend_options
from oku_cli.options.daemon.allow_options import refuse_secrets, secret_options
from oku_cli.options.daemon.retention_options import read_retention_variables
from oku_cli.options.daemon.user_code_options import confinement_options, refuse_confinement
from oku_cli.options.loki_options import LokiOptions, loki_options, pick_loki_options, refuse_loki
from oku_cli.options.option_group import CommandT, option
from oku_cli.options.watch_options import drop_grafana_without_loki, pick_watch, sigterm_option, watch_options
from oku_core.process.landlock import Confinement
from oku_core.spec.fields import FieldGroup
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.records import RunRecord


def existing_run_options(when: str = "") -> Callable[[CommandT], CommandT]:
    """The options of a command whose function takes them for `ExistingRun.pick`.

    Args:
        when: from when on the run has the workers and delay servers, as the help says it.
    """
    servers = f"Use N delay server processes{when}."
    additions = (
        confinement_options(serves_others=False),
        secret_options(has_variables=False),
        loki_options,
        sigterm_option,
        watch_options,
        backend_options,
        option(FieldGroup.DELAY_SERVERS, "--servers", metavar="N", help=servers),
        option(FieldGroup.LOAD, "-w", "--workers", metavar="N", help=f"Use N workers{when}."),
    )

    def add_all(command: CommandT) -> CommandT:
        for add in additions:
            command = add(command)
        return command

    return add_all


@dataclass(frozen=True)
class ExistingRun(ABC):
    """A run that exists, and how a command begins with it.

    Attributes:
        reference: how the user named it.
        data_dir: the folder of local runs.
        coordinator: the coordinator that has it, if the user named one.
        secrets: what a local stack may insert.
        confinement: whether it confines user code.
    """

    reference: str
    data_dir: DataDir
    coordinator: CoordinatorRef | None
    secrets: SecretSource
    confinement: Confinement

    @classmethod
    def pick(cls, reference: str, options: dict[str, Any]) -> Self:
        """Build it from the options of a command, and remove those it uses."""
        folder = DataDir(options.pop("data_dir"))
        return cls(
            reference, folder, *(options.pop(key) for key in ("coordinator", "secrets", "confinement"))
        )

    @abstractmethod
    def start(self, reference: str) -> RunStart:
        """Begin at a coordinator."""

    @abstractmethod
    def start_locally(self, record: "RunRecord") -> RunStart:
        """Begin with the record of the run; `UserError` if it cannot be done."""

    def carry_out(self, options: dict[str, Any]) -> int:
        """Begin, and follow the run to its end; return the exit code.

        Args:
            options: those of watching, of Loki, and how many workers and delay servers there are to be.
        """
        watch = pick_watch(options)
        with watch.explaining_mistakes():
            return self._carry_out(options, watch)

    def _carry_out(self, options: dict[str, Any], watch: Watch) -> int:
        loki = pick_loki_options(options)
        given = parse_spec(Source(None, _drop_none(options)))
        reached = find_coordinator(self.coordinator, self.data_dir)
        if reached is None:
            if not loki.loki:
                watch = replace(watch, grafana=drop_grafana_without_loki(watch.grafana))
            return run_async(self._run_locally(given, loki, watch), watch)
        refuse_loki(loki)
        refuse_secrets(self.secrets)
        refuse_confinement(self.confinement)
        if self.coordinator is not None:
            refuse_shape(workers=given.workers, servers=given.servers)
        return run_async(run_remotely(reached, self.start(self.reference), watch), watch)

    async def _run_locally(self, given: Spec, loki: LokiOptions, watch: Watch) -> ExitCode:
        from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # only what is used

        backend = LedgerBackend.settle(self.data_dir)
        record = backend.require_run(await find_run(backend, self.reference))
        start = self.start_locally(record)
        spec = record.spec
        shape = msgspec.structs.replace(
            spec, workers=given.workers or spec.workers, servers=given.servers or spec.servers
        )
        plan = build_plan(
            shape,
            self.secrets,
            loki.build_environment() | read_retention_variables(),
            has_loki=bool(loki.loki),
            confinement=self.confinement,
        )
        return await run_locally(self.data_dir, plan, start, watch)


def _drop_none(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}
