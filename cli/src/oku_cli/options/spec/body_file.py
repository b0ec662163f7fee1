"""`--body @FILE`: the text of a file, or of standard input, goes into the spec as its body.

Only the command line may name such a file. A spec file may be somebody else's, and what its body named would
be sent to the target that it names. In either, a body that begins with `@` is written with `@@`.
"""

from collections.abc import Mapping, Sequence

from oku_cli.options.spec.input_file import STANDARD_INPUT, STANDARD_INPUT_LABEL, expand_home, read_input
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source

_MARK = "@"


def read_body(sources: Sequence[Source]) -> list[Source]:
    """The sources with their body as it is sent: every byte of its file, also a line break at the end.

    Later sources override earlier ones, so only the last body counts.

    Raises:
        UserError: the file cannot be read, is too large or not UTF-8, or a spec file names it.
    """
    read = list(sources)
    for index, source in reversed(list(enumerate(sources))):
        if (body := _find_body(source.values)) is None:
            continue
        if isinstance(body, str) and body.startswith(_MARK):
            others = [other.label for other in sources if other is not source]
            read[index] = Source(source.label, {**source.values, "body": _read_text(source, body, others)})
        break
    return read


def _find_body(values: object) -> object:
    return values.get("body") if isinstance(values, Mapping) else None  # `parse_spec` refuses what is none


def _read_text(source: Source, body: str, others: Sequence[str | None]) -> str:
    name = body.removeprefix(_MARK)
    if name.startswith(_MARK):
        return name
    if source.label is not None:
        raise UserError(
            f"{source.place('body')}: {format_value(body)} names a file, which only the command line may: "
            f"--body {format_value(body)}; a body that begins with @ is written @{format_value(body)}"
        )
    label = f"{source.place('body')}: {format_value(body)}"
    if name == STANDARD_INPUT and STANDARD_INPUT_LABEL in others:
        raise UserError(f"{label}: {STANDARD_INPUT_LABEL} is the spec already")
    content = read_input(expand_home(name), label)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{label}: byte {error.start} is not UTF-8") from error
