"""`oku import`: a spec from a curl command, a HAR file or an OpenAPI document."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from oku_cli.exit_code import ExitCode
from oku_cli.imports.curl.curl_command import read_curl
from oku_cli.imports.har.har_file import HarChoice, read_har
from oku_cli.imports.headers import SecretBox
from oku_cli.imports.imported_spec import ImportedSpec
from oku_cli.imports.openapi.openapi_document import OpenApiChoice, read_openapi
from oku_cli.imports.spec_writer import write_spec
from oku_cli.options.option_group import GroupedCommand, OptionGroup, option
from oku_cli.options.spec.input_file import (
    STANDARD_INPUT,
    STANDARD_INPUT_LABEL,
    StreamedSpec,
    find_file,
    read_input,
)
from oku_cli.options.spec.spec_file import SPEC_FILE
from oku_cli.report.output_files import STANDARD_OUTPUT, check_output, open_output
from oku_cli.terminal.printable import write_note
from oku_cli.yaml_reader import decode_yaml
from oku_core.errors import UserError, format_value
from oku_core.spec.files import TLS_FILE_KEYS
from oku_core.spec.parser import Source, parse_spec

_KINDS = ("curl", "har", "openapi")
_KIND_BY_OPTION = {
    "files_dir": "curl", "include": "har", "exclude": "har", "assets": "har", "base_url": "openapi",
    "deletes": "openapi",
}  # fmt: skip
_LARGEST_BYTES = 256 << 20
"""A browser writes the contents of all answers into a HAR file."""


@click.command(
    name="import",
    cls=GroupedCommand,
    examples={
        "From a command that a browser has copied": "oku import curl - -o spec.yaml",
        "From a recording, without what a browser loads beside": "oku import har shop.har -o spec.yaml",
        "From an OpenAPI document": "oku import openapi openapi.yaml --base-url http://127.0.0.1:8080",
    },
)
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("source")
@option(
    OptionGroup.OUTPUT, "--output", "-o", metavar="FILE", default=STANDARD_OUTPUT,
    help="Write the spec to FILE; default: standard output.",
)  # fmt: skip
@option(
    OptionGroup.SECRETS, "--keep-secrets", is_flag=True,
    help="Write tokens, cookies and passwords into the spec; default: {env:NAME} stands for them.",
)  # fmt: skip
@option(
    OptionGroup.OUTPUT, "--include", metavar="PART", multiple=True,
    help="Of a HAR file: only URLs with this part, of any host; repeatable.",
)  # fmt: skip
@option(
    OptionGroup.OUTPUT, "--exclude", metavar="PART", multiple=True,
    help="Of a HAR file: no URLs with this part; repeatable.",
)  # fmt: skip
@option(
    OptionGroup.OUTPUT, "--assets", is_flag=True,
    help="Of a HAR file: also images, fonts, styles and scripts.",
)  # fmt: skip
@option(
    OptionGroup.OUTPUT, "--base-url", metavar="URL",
    help="Of an OpenAPI document: send to this server instead of its first one.",
)  # fmt: skip
@option(
    OptionGroup.OUTPUT, "--deletes", is_flag=True,
    help="Of an OpenAPI document: also operations with DELETE.",
)  # fmt: skip
@option(
    OptionGroup.SECRETS, "--files-dir", metavar="FOLDER", type=click.Path(path_type=Path),
    help="Folder whose files a curl command from standard input may name. Default: none.",
)  # fmt: skip
def command(
    kind: str,
    source: str,
    output: str,
    files_dir: Path | None,
    keep_secrets: bool,  # noqa: FBT001  # click passes flags so
    **choice: Any,
) -> int:
    """Write a spec from what you have: KIND is curl, har or openapi.

    SOURCE is a curl command in quotes, or a file; - is standard input. Tokens, cookies and passwords are
    replaced by placeholders, and comments name the parts that could not be taken over.
    """
    check_output("--output", output)
    _check_options(kind, files_dir=files_dir, **choice)
    if files_dir is not None and source != STANDARD_INPUT:
        raise UserError("--files-dir: is for a command from standard input; one in quotes may name any file")
    try:
        imported = _read_curl(source, files_dir) if kind == "curl" else _read(kind, source, choice)
        secrets = SecretBox(keeps=keep_secrets)
        text = write_spec(imported, secrets)
        parse_spec(Source("the spec", decode_yaml(text.encode(), SPEC_FILE)))
    except ValueError as error:
        label = "curl" if kind == "curl" else _name(source)
        raise UserError(f"{label}: {_describe(error)}") from error
    with open_output("--output", output) as output_stream:
        output_stream.write(text.encode())
    for line in secrets.literal.describe():
        write_note(line)
    return ExitCode.COMPLETED


def _check_options(kind: str, **given: object) -> None:
    """Refuse options of another kind."""
    for name, value in given.items():
        if value and _KIND_BY_OPTION[name] != kind:
            raise UserError(f"--{name.replace('_', '-')}: is allowed only with {_KIND_BY_OPTION[name]}")


def _read(kind: str, source: str, given: Mapping[str, Any]) -> ImportedSpec:
    content = read_input(source, _name(source), _LARGEST_BYTES)
    choice = {name: value for name, value in given.items() if _KIND_BY_OPTION[name] == kind}
    if kind == "har":
        return read_har(content, HarChoice(**choice))
    return read_openapi(content, OpenApiChoice(**choice))


def _read_curl(source: str, files_dir: Path | None) -> ImportedSpec:
    if source != STANDARD_INPUT:
        return read_curl(source, _read_file)
    streamed = StreamedSpec(STANDARD_INPUT_LABEL, {}, files_dir=files_dir)

    def find(name: str) -> str:
        return find_file(streamed, name, STANDARD_INPUT_LABEL, "")

    imported = read_curl(_read_file(STANDARD_INPUT), lambda name: _read_file(find(name)))
    certificates = {key: find(imported.settings[key]) for key in TLS_FILE_KEYS if key in imported.settings}
    return replace(imported, settings={**imported.settings, **certificates})


def _describe(error: ValueError) -> str:
    if isinstance(error, UnicodeEncodeError):  # of half a surrogate pair, which JSON can escape
        return f"{format_value(error.object)} has characters that UTF-8 cannot encode"
    return str(error)


def _read_file(name: str) -> str:
    """A file that a curl command names, or the command itself."""
    try:
        return read_input(name, _name(name)).decode()
    except UnicodeDecodeError:
        raise UserError(f"{_name(name)}: is not UTF-8, which a body has to be") from None


def _name(source: str) -> str:
    return STANDARD_INPUT_LABEL if source == STANDARD_INPUT else source
