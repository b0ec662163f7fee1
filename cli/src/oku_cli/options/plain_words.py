"""Words that a shell may put into a command line as they are.

What a shell offers goes into the command line without quotes, at least in bash, and is run there with Enter.
Names of runs, tags and files may be somebody else's: one that a shell would take apart is not offered.
"""

import re
from collections.abc import Sequence

from click.shell_completion import CompletionItem

_PLAIN_WORD = re.compile(r"(?:@~/)?[\w.@%+:/][\w.@%+:/-]*")
"""What no shell takes for anything but text, and no command for a flag."""


def is_plain_word(text: str) -> bool:
    """Whether a shell takes a text as one word, without changes."""
    return bool(_PLAIN_WORD.fullmatch(text))


def keep_plain_words(items: Sequence[CompletionItem[str]]) -> list[CompletionItem[str]]:
    """The items without the words that a shell would take apart; files and folders it completes by itself."""
    return [item for item in items if item.type != "plain" or is_plain_word(str(item.value))]
