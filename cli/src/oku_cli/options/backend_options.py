"""The options that say where runs are: in a local data folder, or at a coordinator."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from oku_cli.backends.coordinator_ref import CoordinatorRef, Endpoint, read_token
from oku_cli.backends.data_dir import DEFAULT
from oku_cli.options.option_group import CommandT, OptionGroup, option
from oku_core.errors import UserError


def backend_options(command: CommandT) -> CommandT:
    """`--data-dir`, `--coordinator`, `--kube` and what belongs to them.

    The command gets a path, `data_dir`, and a reference or None, `coordinator`.
    """

    @functools.wraps(command)
    def take(*arguments: Any, **options: Any) -> Any:
        given = RemoteOptions(**{name: options.pop(name) for name in RemoteOptions.__dataclass_fields__})
        return command(*arguments, coordinator=given.build_ref(), **options)

    for add in (
        option(OptionGroup.RUNS, "--context", metavar="NAME", help="Kube context; default: the current one."),
        option(
            OptionGroup.RUNS, "--release", metavar="NAME", help="Name of the release, if there are several."
        ),
        option(
            OptionGroup.RUNS,
            "--namespace",
            metavar="NAME",
            help="Namespace of the release; default: that of the kube context.",
        ),
        option(
            OptionGroup.RUNS,
            "--kube",
            is_flag=True,
            help="Use the coordinator of a Helm release in Kubernetes.",
        ),
        option(
            OptionGroup.RUNS,
            "--token",
            envvar="OKU_TOKEN",
            help="API token; prefer OKU_TOKEN, flags are visible to others.",
        ),
        option(
            OptionGroup.RUNS,
            "--coordinator",
            metavar="URL",
            envvar="OKU_COORDINATOR",
            help="Use this coordinator instead of a local stack.",
        ),
        option(
            OptionGroup.RUNS,
            "--data-dir",
            metavar="FOLDER",
            type=click.Path(path_type=Path, file_okay=False),
            default=DEFAULT,
            show_default=True,
            envvar="OKU_DATA_DIR",
            help="Folder of local runs: ledger, logs and broker.",
        ),
    ):
        take = add(take)
    return cast("CommandT", take)


@dataclass(frozen=True, kw_only=True)
class RemoteOptions:
    """Which coordinator to use instead of a local stack, as it was given."""

    coordinator: str | None = None
    token: str | None = None
    kube: bool = False
    namespace: str | None = None
    release: str | None = None
    context: str | None = None

    def build_ref(self) -> CoordinatorRef | None:
        """The coordinator that was named, or None for a local one; `UserError` when it cannot be."""
        if self.kube:
            if self.coordinator is not None:
                raise UserError("--kube: cannot be combined with --coordinator (OKU_COORDINATOR)")
            from oku_cli.kube.kube_endpoint import KubeEndpoint  # noqa: PLC0415  # aiohttp takes long to load

            return KubeEndpoint(
                context=self.context or "",
                namespace=self.namespace or "",
                release=self.release or "",
                token="" if self.token is None else read_token(self.token),
            )
        for flag in ("namespace", "release", "context"):
            if getattr(self, flag) is not None:
                raise UserError(f"--{flag}: is allowed only with --kube")
        if self.coordinator is None:
            return None
        if not self.coordinator.startswith(("http://", "https://")):
            raise UserError(f"--coordinator: {self.coordinator} is not a URL such as http://127.0.0.1:8700")
        if "?" in self.coordinator or "#" in self.coordinator:
            raise UserError("--coordinator: the URL has a ? or a #; give only the address of the coordinator")
        if self.token is None:
            raise UserError("--token: a remote coordinator asks for a token, none was given")
        url = self.coordinator.rstrip("/")
        return Endpoint(url, read_token(self.token), ["--coordinator", url])
