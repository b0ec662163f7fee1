"""The argument RUN, which the shell completes with the runs that a command can take."""

import asyncio
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from oku_cli.options.backend_options import RemoteOptions
from oku_cli.options.option_group import CommandT, is_plain_word
from oku_cli.terminal.printable import make_printable
from oku_core.accounting.run_state import RunState
from oku_core.results.run_api import LATEST

_TIMEOUT_S = 1.0
"""A coordinator that takes longer to answer has nothing to offer: somebody waits at a prompt."""
_MOST_READ, _MOST_OFFERED = 1000, 100


def run_argument(
    name: str = "run", *, states: Container[RunState] = tuple(RunState), **attributes: Any
) -> Callable[[CommandT], CommandT]:
    """`RUN`.

    Args:
        name: under which the command gets it.
        states: of the runs that the command can take.
        attributes: those of any argument.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        try:
            rows = asyncio.run(_fetch_rows(context))
        except Exception:  # noqa: BLE001  # nobody at a prompt wants to read it
            return []
        fitting = [row for row in rows if row["state"] in states]
        words = list(_list_words(fitting, has_latest=fitting[:1] == rows[:1]))
        return _choose(words, {row["run"] for row in fitting}, incomplete)

    return click.argument(name, shell_complete=complete, **attributes)


async def _fetch_rows(context: click.Context) -> Sequence[dict[str, Any]]:
    options = dict(context.params)
    remote = RemoteOptions(**{name: options[name] for name in RemoteOptions.__dataclass_fields__})
    if remote.kube:
        return []  # a port would have to be forwarded first
    if (coordinator := remote.build_ref()) is None:
        from oku_cli.backends.data_dir import DataDir  # noqa: PLC0415  # the ledger takes long to load
        from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415

        # The ledger is read beside a stack that may run, and nothing is done about a run that was killed.
        return await LedgerBackend(DataDir(options["data_dir"])).fetch_runs(_MOST_READ)
    from oku_cli.backends.client import Client  # noqa: PLC0415  # aiohttp takes long to load

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
    # Of several words a shell puts what they begin with in place of what was typed, so that must be it.
    holding = [each for each in plain if incomplete in each[0] and each[0] in ids]
    chosen = begun or (holding if len(holding) == 1 else [])
    return [CompletionItem(word, help=make_printable(what)) for word, what in chosen[:_MOST_OFFERED]]
