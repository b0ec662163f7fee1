"""The options of coordinator and workers about their broker, and the key that they sign their messages with.

The key comes from a file or a variable, never from a flag.
"""

import os
from pathlib import Path

import click

from oku_cli.options.option_group import OptionGroup, add_options, option
from oku_core.errors import UserError, format_value
from oku_core.messaging.credentials import HOW_TO_MAKE, find_weakness

VARIABLE = "OKU_MESSAGE_KEY"
_FLAG = "--message-key-file"
_LONGEST_FILE = 4096
_HINT = f"make one for coordinator and workers: export {VARIABLE}={HOW_TO_MAKE}"

broker_options = add_options(
    option(
        OptionGroup.BROKER, "--broker-url", metavar="URL", envvar="OKU_BROKER_URL", required=True,
        help="Broker URL: redis://, rediss://, redis+socket:// or amqp://; or unix:///PATH for a socket"
        " between coordinator and workers on one machine, without a broker.",
    ),
    option(
        OptionGroup.BROKER, _FLAG, metavar="FILE", envvar=f"{VARIABLE}_FILE",
        type=click.Path(path_type=Path),
        help=f"File with the key that signs messages, of at least 16 bytes, the same for coordinator"
        f" and workers; or set the key itself as {VARIABLE}.",
    ),
)  # fmt: skip


def read_message_key(file: Path | None) -> bytes:
    """The key of a file, or of the variable, without blanks and line breaks around it.

    Raises:
        UserError: there is none, or both, or it is easy to guess, or the file cannot be read.
    """
    text = os.environ.get(VARIABLE)
    if file is None:
        if text is None:
            raise UserError(f"{_FLAG} ({VARIABLE}): is missing; {_HINT}")
        return _check(text.encode(errors="surrogateescape"), VARIABLE)
    if text is not None:
        raise UserError(f"{_FLAG}: cannot be combined with {VARIABLE}")
    try:
        with file.open("rb") as opened:
            return _check(opened.read(_LONGEST_FILE), f"{_FLAG}: {format_value(str(file))}")
    except OSError as error:
        raise UserError(f"{_FLAG}: {format_value(str(file))}: {error.strerror}") from error


def _check(text: bytes, source: str) -> bytes:
    key = text.strip()
    if weakness := find_weakness(key, "bytes"):
        raise UserError(f"{source}: {weakness}; {_HINT}")
    return key
