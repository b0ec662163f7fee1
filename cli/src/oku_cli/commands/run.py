"""`oku run`: makes a spec from a file and flags, and runs it here or at a remote coordinator."""

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import click
import msgspec

from oku_cli.backends.run_backend import RunPlace
from oku_cli.follow.follower import run_async
from oku_cli.follow.run_start import RunStart, run_remotely
from oku_cli.follow.upload import LocalFile
from oku_cli.local.local_run import check_memory, run_locally
from oku_cli.options.daemon.retention_options import read_kept_keys_s
from oku_cli.options.option_group import JsonCommand, OptionGroup, option
from oku_cli.options.run_options import place_options
from oku_cli.options.spec.code_scan import read_code
from oku_cli.options.spec.data_scan import scanned
from oku_cli.options.spec.file_values import build_file_finder, read_files
from oku_cli.options.spec.input_file import STANDARD_INPUT, expand_home, is_stream
from oku_cli.options.spec.spec_options import pick_spec_values, spec_options
from oku_cli.options.stack_options import StackOptions, stack_options
from oku_cli.options.watch_options import (
    FILE_HINT,
    once_option,
    pick_watch,
    sigterm_option,
    watch_options,
)
from oku_cli.process.interrupt import SignalAction
from oku_core.errors import UserError, format_value
from oku_core.http_client.tls import build_tls
from oku_core.spec.files import EVERYWHERE, TLS_FILE_KEYS
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import find_file_reference

_SUFFIXES = {".yaml", ".yml", ".json"}
_CODE_SUFFIX = ".py"
_EXAMPLES = {
    "Send 1000 requests to your own service, 50 at a time": "oku run http://127.0.0.1:8080/ -n 1000 -c 50",
    "Ask for each of 5000 items once; a missing one is fine": (
        "oku run 'http://127.0.0.1:8080/items/{i}' -n 5000 --expect-status 200,404"
    ),
    "Send 200 a second for 10 s, however slow the answers": (
        "oku run http://127.0.0.1:8080/ --rate 200/s --duration 10s"
    ),
    "Run a scenario 10,000 times, 50 at a time": "oku run scenario.py -n 10k -c 50",
    "Run a locustfile with 200 users": (
        "oku run locustfile.py --users 200 --iterations 10k --host http://127.0.0.1:8080"
    ),
    "Post JSON with a header": "oku run http://127.0.0.1:8080/orders -d '{\"id\": {i}}' -H 'X-Key: 123'",
    "Try Oku without a service": "oku run -n 10k --delay 5ms..80ms",
}


@click.command(name="run", cls=JsonCommand, file_hint=FILE_HINT, examples=_EXAMPLES)
@click.argument(
    "targets", nargs=-1, metavar="[SPEC.YAML | FILE.py | URL...]", type=click.Path(readable=False)
)
@spec_options
@place_options
@watch_options
@sigterm_option
@option(
    OptionGroup.SECRETS, "--files-dir", metavar="FOLDER", type=click.Path(path_type=Path),
    help="Folder whose files a spec from standard input may name. Default: none.",
)  # fmt: skip
@stack_options
@once_option
def command(
    targets: tuple[str, ...],
    files_dir: Path | None,
    place: RunPlace,
    **options: Any,
) -> int:
    """Run a load test and account for every request.

    Requests go to URL, or to delay servers that Oku brings. The spec comes from a file (- is standard
    input), from flags, or both; flags override the file. A Python file is user code: a scenario, or a
    locustfile; --scenario FILE is the same.

    --body @FILE sends the content of a file, line breaks included, --body @- standard input; {i} is the
    index there, too. --cacert, --cert and --key @FILE send a file of this machine to the workers. @@
    begins a body, or a path, with @.

    Ctrl-C pauses the run and prints how to resume it. A second Ctrl-C stops at once, or leaves a remote
    run to its coordinator.
    """
    code = [target for target in targets if _is_code(target)]
    files = [target for target in targets if not _is_url(target) and not _is_code(target)]
    for file in files:
        _check_name(file)
    if len(files) > 1:
        raise UserError(f"{files[1]}: only one spec file is allowed, {files[0]} was given already")
    _check_files_dir(files_dir, files)
    options["url"] = (*options["url"], *filter(_is_url, targets))
    _add_code(options, code)
    once, stack = options.pop("once"), StackOptions.pick(options)
    given = Source(None, pick_spec_values(options))
    goes_on = once is not None and place.coordinator is not None
    watch = pick_watch(options, SignalAction.DETACH if goes_on else SignalAction.PAUSE)
    with (
        watch.explaining_mistakes(),
        scanned(read_code(read_files([*(_read_file(file, files_dir) for file in files), given]))) as read,
    ):
        spec = parse_spec(*read.sources)
        if place.coordinator is not None:
            stack.refuse()
            start = RunStart.submit(spec, read.files, once)
            return run_async(run_remotely(place.coordinator, start, watch), watch)
        spec = find_files(spec, read.files)
        watch = replace(watch, grafana=stack.check_grafana(watch.grafana))
        plan = stack.build_plan(spec)
        check_memory(spec, plan.workers, build_file_finder(read.files))
        if once is None:
            start = RunStart.submit(spec, read.files)
            # The stack of another command may end before it is known whether it has the run.
            joining = RunStart.submit(spec, read.files, secrets.token_hex(16), is_own_key=True)
            return run_async(run_locally(place.folder, plan, start, watch, joining=joining), watch)
        from oku_cli.local.folder_runs import KeyedSpec, LocalOnce  # noqa: PLC0415  # loads the ledger

        start = RunStart.submit(spec, read.files, once)
        keyed = KeyedSpec(once, spec, read_kept_keys_s())
        return run_async(LocalOnce(place.folder, plan, start, keyed, watch).carry_out(), watch)


def _read_file(name: str, files_dir: Path | None) -> Source:
    from oku_cli.options.spec.spec_file import read_spec_file  # noqa: PLC0415  # most runs need no YAML

    return read_spec_file(name, files_dir)


def _check_files_dir(folder: Path | None, files: Sequence[str]) -> None:
    if folder is None:
        return
    if not any(map(is_stream, files)):
        raise UserError(
            "--files-dir: is for a spec from standard input; a spec file names what is in its own folder"
        )
    if not folder.is_dir():
        raise UserError(f"--files-dir: {folder} is not a folder here")


def _is_url(target: str) -> bool:
    return "://" in target


def _is_code(target: str) -> bool:
    return not _is_url(target) and PurePath(target).suffix == _CODE_SUFFIX


def _add_code(options: dict[str, Any], code: Sequence[str]) -> None:
    """Take a Python file as `--scenario`."""
    given = [*filter(None, [options["scenario"]]), *code]
    if len(given) > 1:
        raise UserError(f"{given[1]}: only one file of user code is run, {given[0]} was given already")
    options["scenario"] = given[0] if given else None


def _check_name(file: str) -> None:
    """Recognise a URL without a scheme, which is not meant as a file."""
    if file == STANDARD_INPUT or PurePath(file).suffix in _SUFFIXES or os.path.lexists(file):
        return
    url = format_value(f"http://{file.strip().lstrip(':/') or 'host/'}")
    raise UserError(f"{format_value(file)}: there is no such spec file; to test a URL, write {url}")


def find_files(spec: Spec, files: Sequence[LocalFile] = ()) -> Spec:
    """Make the file names of a spec absolute, so that it holds in any folder; `UserError` if unusable."""
    named = {key: path for key in TLS_FILE_KEYS if (path := getattr(spec, key)) is not None}
    paths = {
        key: str(Path(expand_home(path)).absolute())
        for key, path in named.items()
        if find_file_reference(path) is None
    }
    spec = msgspec.structs.replace(spec, **paths)
    build_tls(spec, replace(EVERYWHERE, find=build_file_finder(files)))
    return spec
