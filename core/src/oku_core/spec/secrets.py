"""The secrets that a spec names: `{env:NAME}` and `{file:NAME}` in URLs, proxy, values of headers and body.

The spec keeps the placeholders wherever it goes: ledger, broker, API, reports. Only a worker puts values in
their place, of names that its operator allows, for whoever may submit runs says where they are sent. No
message of this module has a value in it.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from oku_core.errors import UserError
from oku_core.process.redaction import hide
from oku_core.spec.files import NOWHERE, SpecFileError, SpecFiles
from oku_core.spec.header import Header, find_framing_fault
from oku_core.spec.placeholder import INDEX_PLACEHOLDER, SECRET_PLACEHOLDER
from oku_core.spec.spec import Spec
from oku_core.spec.url import Url

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What no value of a header can have (RFC 9110, section 5.5): it would begin another header, or a body."""


class SecretError(UserError):
    """A secret cannot be used here; the message names its placeholder."""


@dataclass(frozen=True)
class SecretSource:
    """What secrets a spec may name here.

    Args:
        variables: names of environment variables, for `{env:NAME}`.
        folder: whose files `{file:NAME}` may name; none unless given.
    """

    variables: tuple[str, ...] = ()
    folder: Path | None = None

    def fill_in(self, spec: Spec) -> Spec:
        """The spec with values in the place of its placeholders, which are read now; may block.

        From now on no text that is redacted shows them.

        Raises:
            SecretError: a name is not allowed, has no value here, or a value cannot stand where it should.
        """
        placeholders = frozenset(list_secrets(spec))
        if not placeholders:
            return spec
        filled = _fill_in(spec, {placeholder: self._read(placeholder) for placeholder in placeholders})
        if find_framing_fault(filled.headers, filled.body):
            raise SecretError(
                f"with the value of {', '.join(sorted(placeholders))}, the headers contradict the body"
            )
        return filled

    def _read(self, placeholder: str) -> str:
        kind, name = placeholder[1:-1].split(":")
        value = self._read_variable(name) if kind == "env" else self._read_file(name)
        reason = ""
        if not value:
            reason = "is empty"
        elif INDEX_PLACEHOLDER in value:
            reason = f"has {INDEX_PLACEHOLDER} in it, which would be taken for the index"
        elif any("\ud800" <= char <= "\udfff" for char in value):
            reason = "is not UTF-8"
        if reason:
            raise SecretError(f"{placeholder}: its value {reason}")
        hide(value, quote(value, safe=""), repr(value)[1:-1])
        return value

    def _read_variable(self, name: str) -> str:
        if name not in self.variables:
            raise SecretError(f"{{env:{name}}} is not allowed here: --allow-env {name} allows it")
        if (value := os.environ.get(name)) is None:
            raise SecretError(f"{{env:{name}}}: this variable is not set here")
        return value

    def _read_file(self, name: str) -> str:
        if self.folder is None:
            raise SecretError(f"{{file:{name}}} is not allowed here: --secrets-dir FOLDER allows it")
        try:
            content = SpecFiles((self.folder,)).read(str(self.folder / name))
            # Editors and `kubectl` leave a line break at the end that nobody means.
            return content.decode().rstrip("\r\n")
        except SpecFileError as error:
            raise SecretError(f"{{file:{name}}}: {error}") from error
        except UnicodeDecodeError:
            raise SecretError(f"{{file:{name}}}: its value is not UTF-8") from None


@dataclass(frozen=True)
class SpecSources:
    """What a spec may name where a worker runs.

    Args:
        files: reads its files.
        secrets: has its secrets.
    """

    files: SpecFiles = NOWHERE
    secrets: SecretSource = SecretSource()


NO_SOURCES = SpecSources()
"""For workers of which nobody said what they may read."""


def reads_sources(spec: Spec) -> bool:
    """Whether something of a spec is read where its worker runs: the next run may find it changed."""
    return any((spec.cacert, spec.cert, spec.key, *list_secrets(spec)))


def list_secrets(spec: Spec) -> Iterator[str]:
    """The placeholders of a spec that stand for secrets."""
    for text in (*spec.urls, *spec.headers, spec.proxy or "", spec.body or ""):
        yield from (found[0] for found in SECRET_PLACEHOLDER.finditer(text))


def _fill_in(spec: Spec, values: Mapping[str, str]) -> Spec:
    in_url = _replacing(lambda placeholder: quote(values[placeholder], safe=""))
    in_header = _replacing(lambda placeholder: _check_header_value(placeholder, values[placeholder]))
    in_body = _replacing(values.__getitem__)
    return msgspec.structs.replace(
        spec,
        urls=tuple(Url(in_url(url)) for url in spec.urls),
        headers=tuple(Header(in_header(header)) for header in spec.headers),
        proxy=spec.proxy and Url(in_url(spec.proxy)),
        body=spec.body and in_body(spec.body),
    )


def _replacing(find: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: SECRET_PLACEHOLDER.sub(lambda found: find(found[0]), text)


def _check_header_value(placeholder: str, value: str) -> str:
    if _CONTROL.search(value):
        raise SecretError(
            f"{placeholder}: its value has a line break or control character, which no header may have"
        )
    return value
