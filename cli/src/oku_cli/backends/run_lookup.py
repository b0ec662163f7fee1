"""Finds the run that a command names: by `latest`, its id, its name, or a part that only its id has."""

import difflib
from collections.abc import Sequence
from typing import Any

from oku_cli.backends.run_backend import RunBackend
from oku_cli.process.interrupt_hints import build_hint
from oku_core.accounting.run_reference import check_reference
from oku_core.errors import UserError, format_value

MOST_NAMED = 5
"""Of several runs that a text may mean, this many are named, the newest first."""
_MOST_COMPARED = 100


async def find_run(backend: RunBackend, reference: str, *, takes_newest: bool = False) -> str:
    """Return the id of the run that a text stands for.

    Args:
        backend: where the runs are.
        reference: the text: an id is taken first, then `latest`, then a name, then a part of an id.
        takes_newest: whether a name that several runs share stands for the newest of them. That suits
            commands that only look; those that change a run should not choose one.

    Raises:
        UserError: it stands for no run, or for several.
    """
    try:
        check_reference(reference)
    except ValueError as error:
        raise UserError(f"RUN: {error}") from error
    found = await backend.fetch_runs(MOST_NAMED + 1, reference)
    if not found:
        raise UserError(f"{backend.place}: {await _describe_none(backend, reference)}")
    is_shared_name = found[0]["name"] == reference
    if len(found) > 1 and not (takes_newest and is_shared_name):
        raise UserError(f"{backend.place}: {_describe_several(reference, found)}")
    return str(found[0]["run"])


async def _describe_none(backend: RunBackend, reference: str) -> str:
    newest = await backend.fetch_runs(_MOST_COMPARED)
    if not newest:
        return f"there are no runs yet, start one with: {build_hint('run', *backend.flags)}"
    names = [text for row in newest for text in (row["run"], row["name"]) if text]
    near = difflib.get_close_matches(reference, names, n=1)
    hint = f", did you mean {near[0]}?" if near else ""
    return f"there is no run {format_value(reference)}{hint}"


def _describe_several(reference: str, found: Sequence[dict[str, Any]]) -> str:
    named = [f"{row['run']} ({row['state']})" for row in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        named.append("an older one")
    return f"{reference} may be {', '.join(named[:-1])} or {named[-1]}; give the id of one"
