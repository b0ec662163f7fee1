"""What commands have in common that send requests of a run that is there: resuming it, and retrying it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.run_backend import find_coordinator, find_run
from oku_cli.exit_code import ExitCode
from oku_cli.local.local_run import build_plan, run_locally
from oku_cli.options.daemon.allow_options import refuse_secrets
from oku_cli.options.daemon.retention_options import read_retention_variables
from oku_cli.options.daemon.user_code_options import refuse_confinement
from oku_cli.options.loki_options import LokiOptions, pick_loki_options, refuse_loki
from oku_cli.options.watch_options import drop_grafana_without_loki, pick_watch
from oku_cli.remote.endpoint import CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.remote.remote_run import RunStart, refuse_shape, run_remotely
from oku_cli.remote.watch import Watch
from oku_core.process.landlock import Confinement
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.records import RunRecord


@dataclass(frozen=True)
class ExistingRun:
    """A run that is there, and how a command begins with it.

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

    def carry_out(
        self,
        options: dict[str, Any],
        start_remotely: Callable[[str], RunStart],
        start_locally: "Callable[[RunRecord], RunStart]",
    ) -> int:
        """Begin, and follow the run to its end; returns the exit code.

        Args:
            options: those of watching, of Loki, and how many workers and delay servers there are to be.
            start_remotely: how to begin at a coordinator, by the reference.
            start_locally: how to begin with the record of the run; it may refuse that by a `UserError`.
        """
        watch = pick_watch(options)
        with watch.explaining_mistakes():
            return self._carry_out(options, watch, start_remotely, start_locally)

    def _carry_out(
        self,
        options: dict[str, Any],
        watch: Watch,
        start_remotely: Callable[[str], RunStart],
        start_locally: "Callable[[RunRecord], RunStart]",
    ) -> int:
        loki = pick_loki_options(options)
        given = parse_spec(Source(None, _drop_none(options)))
        reached = find_coordinator(self.coordinator, self.data_dir)
        if reached is None:
            if not loki.loki:
                watch = replace(watch, grafana=drop_grafana_without_loki(watch.grafana))
            return run_async(self._run_locally(given, loki, watch, start_locally), watch)
        refuse_loki(loki)
        refuse_secrets(self.secrets)
        refuse_confinement(self.confinement)
        if self.coordinator is not None:
            refuse_shape(workers=given.workers, servers=given.servers)
        return run_async(run_remotely(reached, start_remotely(self.reference), watch), watch)

    async def _run_locally(
        self, given: Spec, loki: LokiOptions, watch: Watch, start: "Callable[[RunRecord], RunStart]"
    ) -> ExitCode:
        from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # only what is used

        backend = LedgerBackend.settle(self.data_dir)
        record = backend.require_run(await find_run(backend, self.reference))
        begin = start(record)
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
        return await run_locally(self.data_dir, plan, begin, watch)


def _drop_none(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}
