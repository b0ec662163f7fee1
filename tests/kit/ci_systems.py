"""What CI systems take for commands in the output of their jobs, written down from their own parsers.

`actions/runner` (ActionCommand.cs), `microsoft/azure-pipelines-agent` (Command.cs), TeamCity's service
messages, `buildkite/agent` (header_times_streamer.go) and the sections of GitLab.
"""

import re

_UNSEEN = re.compile("[\u00ad\u034f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEADING = re.compile(r"(?:---|\+\+\+|~~~)\s|\^\^\^\s\+\+\+")
_SECTION = re.compile(r"section_(?:start|end):\d+:[\w.-]+(?:\[.*\])?\r\x1b\[0K")

COMMANDS = (
    "::set-output name=a::b",
    "  ::error file=a::b",
    "\u3000::add-mask::b",
    "##vso[task.setvariable variable=a]b",
    "a ##vso[task.complete result=Failed]",
    "##[set-env name=a]b",
    "##\u200d[error]b",
    "##teamcity[buildStatus text='a']",
    "--- a heading",
    "+++ a heading",
    "~~~ a heading",
    "section_start:1:a\r\x1b[0Ka",
)
"""Lines that are commands of one of them."""


def find_command(output: str) -> str | None:
    """The first line of an output that a CI system would obey; None if there is none."""
    if section := _SECTION.search(output):
        return section[0]
    return next((line for line in re.split(r"\r\n|\r|\n", output) if _is_command(line)), None)


def _is_command(line: str) -> bool:
    compared = _UNSEEN.sub("", _ANSI.sub("", line))
    return bool(
        compared.strip().startswith("::")
        or re.search(r"##[A-Za-z.]*\[", compared)
        or _HEADING.match(compared)
    )
