"""The options that subcommands share, and those of a spec, made from its one table of fields."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from oku_cli.local.data_dir import DEFAULT, Endpoint
from oku_cli.remote.api_token import read_token
from oku_cli.remote.client import CoordinatorRef
from oku_cli.remote.kube import KubeEndpoint
from oku_core.errors import UserError
from oku_core.spec.fields import FIELDS
from oku_core.spec.spec import Spec

_Command = Callable[..., Any]


def spec_options(command: _Command) -> _Command:
    """An option for every field of a spec. Values are not read here: `parse_spec` does, for files as well."""
    for field in reversed(FIELDS):
        default = _format_default(getattr(Spec(), field.attribute))
        note = f"  [default: {default}]" if default else ""
        option = (
            click.option(f"--{field.key}", is_flag=True, default=None, help=field.help)
            if field.is_switch
            else click.option(
                f"--{field.key}", metavar=field.metavar, help=field.help + note, multiple=field.repeatable
            )
        )
        command = option(command)
    return command


def pick_spec_values(options: dict[str, Any]) -> dict[str, object]:
    """Take the options of a spec that were given out of all options of a command."""
    values = {field.key: options.pop(field.key.replace("-", "_")) for field in FIELDS}
    return {key: value for key, value in values.items() if value is not None and value != ()}


def data_dir_option(command: _Command) -> _Command:
    """`--data-dir`."""
    option = click.option(
        "--data-dir", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT, show_default=True,
        envvar="OKU_DATA_DIR", help="Folder of the ledger, the logs and the broker of local runs.",
    )  # fmt: skip
    return option(command)


def remote_options(command: _Command) -> _Command:
    """`--coordinator`, `--kube` and what belongs to them; the command gets them as one, `elsewhere`."""

    @functools.wraps(command)
    def take(*arguments: Any, **options: Any) -> Any:
        given = RemoteOptions(**{name: options.pop(name) for name in RemoteOptions.__dataclass_fields__})
        return command(*arguments, elsewhere=given.build_place(), **options)

    for option in (
        click.option("--context", metavar="NAME", help="Kube context of that release; the current one else."),
        click.option("--release", metavar="NAME", help="Name of that release, where there are several."),
        click.option("--namespace", metavar="NAME", help="Its namespace; that of the kube context else."),
        click.option("--kube", is_flag=True, help="The coordinator of a release in a Kubernetes cluster."),
        click.option("--token", envvar="OKU_TOKEN", help="Its token; others see flags, not the environment."),
        click.option(
            "--coordinator",
            metavar="URL",
            envvar="OKU_COORDINATOR",
            help="A running coordinator instead of a local stack.",
        ),
    ):
        take = option(take)
    return take


@dataclass(frozen=True, kw_only=True)
class RemoteOptions:
    """Which coordinator to use instead of a local stack, as it was given."""

    coordinator: str | None = None
    token: str | None = None
    kube: bool = False
    namespace: str | None = None
    release: str | None = None
    context: str | None = None

    def build_place(self) -> CoordinatorRef | None:
        """The coordinator that was named, or None for a local one; `UserError` when it cannot be."""
        if self.kube:
            if self.coordinator is not None:
                raise UserError("--kube: does not go together with --coordinator (OKU_COORDINATOR)")
            return KubeEndpoint(
                context=self.context or "",
                namespace=self.namespace or "",
                release=self.release or "",
                token="" if self.token is None else read_token(self.token),
            )
        for flag in ("namespace", "release", "context"):
            if getattr(self, flag) is not None:
                raise UserError(f"--{flag}: goes together with --kube only")
        if self.coordinator is None:
            return None
        if not self.coordinator.startswith(("http://", "https://")):
            raise UserError(f"--coordinator: {self.coordinator} is not a URL such as http://127.0.0.1:8700")
        if self.token is None:
            raise UserError("--token: a coordinator elsewhere wants a token, none is given")
        return Endpoint(self.coordinator.rstrip("/"), read_token(self.token))


def watch_options(command: _Command) -> _Command:
    """`--json` and `--quiet`."""
    command = click.option("--quiet", is_flag=True, help="Show no progress.")(command)
    option = click.option(
        "--json", "json_file", metavar="FILE", help="Write the summary as JSON; - is standard output."
    )
    return option(command)


def refuse_servers(spec: Spec) -> None:
    """A coordinator that scales nothing has the delay servers that it has."""
    if spec.servers is not None:
        raise UserError("--servers: shapes a local stack, it does not go together with --coordinator")


def _format_default(value: object) -> str:
    if value is None or value is False or value in ("", ()):
        return ""
    if isinstance(value, float):
        return f"{value:g}s"
    return ",".join(value) if isinstance(value, tuple) else str(value)
