"""The argument RUN, which a shell completes, and the options that define where runs are."""

import asyncio
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import CoordinatorRef, Endpoint, read_token
from oku_cli.backends.data_dir import DEFAULT, DataDir
from oku_cli.backends.run_backend import RunPlace
from oku_cli.options.option_group import CommandT, OptionGroup, add_joined_options, is_plain_word, option
from oku_cli.terminal.printable import make_printable
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.results.run_api import LATEST

_TIMEOUT_S = 1.0
"""A coordinator that takes longer to answer has nothing to offer: a user waits at a prompt."""
_MOST_READ, _MOST_OFFERED = 1000, 100


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


def pick_remote_options(options: dict[str, Any]) -> RemoteOptions:
    """Take the options of a coordinator out of all options of a command."""
    return RemoteOptions(**{name: options.pop(name) for name in RemoteOptions.__dataclass_fields__})


def _pick_place(options: dict[str, Any]) -> RunPlace:
    return RunPlace(pick_remote_options(options).build_ref(), DataDir(options.pop("data_dir")))


place_options = add_joined_options(
    "place",
    _pick_place,
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
    option(
        OptionGroup.RUNS,
        "--coordinator",
        metavar="URL",
        envvar="OKU_COORDINATOR",
        help="Use this coordinator instead of a local stack.",
    ),
    option(
        OptionGroup.RUNS,
        "--token",
        envvar="OKU_TOKEN",
        help="API token; prefer OKU_TOKEN, flags are visible to others.",
    ),
    option(
        OptionGroup.RUNS, "--kube", is_flag=True, help="Use the coordinator of a Helm release in Kubernetes."
    ),
    option(
        OptionGroup.RUNS,
        "--namespace",
        metavar="NAME",
        help="Namespace of the release; default: that of the kube context.",
    ),
    option(OptionGroup.RUNS, "--release", metavar="NAME", help="Name of the release, if there are several."),
    option(OptionGroup.RUNS, "--context", metavar="NAME", help="Kube context; default: the current one."),
)
"""`--data-dir`, `--coordinator`, `--kube` and their details; the command gets one `place`."""


def run_argument(
    name: str = "run", *, states: Container[RunState] = tuple(RunState), **attributes: Any
) -> Callable[[CommandT], CommandT]:
    """`RUN`.

    Args:
        name: under which the command gets it.
        states: of the runs that the command can take.
        attributes: as for any argument.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        try:
            rows = asyncio.run(_fetch_rows(context))
        except Exception:  # noqa: BLE001  # an error would only disturb a user at a prompt
            return []
        fitting = [row for row in rows if row["state"] in states]
        words = list(_list_words(fitting, has_latest=fitting[:1] == rows[:1]))
        return _choose(words, {row["run"] for row in fitting}, incomplete)

    return click.argument(name, shell_complete=complete, **attributes)


async def _fetch_rows(context: click.Context) -> Sequence[dict[str, Any]]:
    options = dict(context.params)
    remote = pick_remote_options(options)
    if remote.kube:
        return []  # a port would have to be forwarded first
    if (coordinator := remote.build_ref()) is None:
        from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # the ledger takes long to load

        # The ledger is read beside a stack that may run, and nothing is done about a run that was killed.
        return await LedgerBackend(DataDir(options["data_dir"])).fetch_runs(_MOST_READ)

    async with asyncio.timeout(_TIMEOUT_S), Client(coordinator) as client:
        return await client.fetch_runs(_MOST_OFFERED)


def _list_words(rows: Sequence[Mapping[str, Any]], *, has_latest: bool) -> Iterator[tuple[str, str]]:
    """Each word that stands for a run, and what the run is: `latest`, ids, and names, the newest first."""
    if rows and has_latest:
        yield LATEST, f"{rows[0]['run']} - {_describe(rows[0])}"
    for row in rows:
        yield row["run"], _describe(row)
    newest: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        newest.setdefault(row["name"], row)
    for name, row in newest.items():
        yield name, f"{row['run']} - {row['state']}"


# The script for fish cuts a text at a comma.
def _describe(row: Mapping[str, Any]) -> str:
    return f"{row['state']} - {row['name']}" if row["name"] else str(row["state"])


def _choose(
    words: Sequence[tuple[str, str]], ids: Container[str], incomplete: str
) -> list[CompletionItem[str]]:
    plain = [(word, what) for word, what in words if is_plain_word(word)]
    begun = [each for each in plain if each[0].startswith(incomplete)]
    # A shell replaces typed text by the common beginning of several words, so they must begin with it.
    holding = [each for each in plain if incomplete in each[0] and each[0] in ids]
    chosen = begun or (holding if len(holding) == 1 else [])
    return [CompletionItem(word, help=make_printable(what)) for word, what in chosen[:_MOST_OFFERED]]
