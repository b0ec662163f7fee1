"""The secrets that a spec names: `{env:NAME}` and `{file:NAME}` in URLs, proxy, header values and body.

The spec keeps the placeholders wherever it is stored or shown: ledger, broker, API, reports. Only a worker
replaces them with values. Anyone who may submit a run decides where the values are sent, so the operator of
the worker must allow each name. No message of this module shows a value.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from oku_core.errors import UserError
from oku_core.process.redaction import hide
from oku_core.spec.files import NOWHERE, SpecFileError, SpecFiles, list_files
from oku_core.spec.request_template import list_headers
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.request_content import Header, find_framing_fault
from oku_core.spec.values.template import (
    INDEX_PLACEHOLDER,
    LITERAL_MARK,
    SECRET_PLACEHOLDER,
    FileText,
    list_names,
    read_body,
    write_body,
)
from oku_core.spec.values.url import Url

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that a header value may not have (RFC 9110, section 5.5); a line break would end the header."""


class SecretError(UserError):
    """A secret cannot be used here; the message names its placeholder."""


class FilledSpec(NamedTuple):
    """A spec with values in the place of its placeholders.

    Attributes:
        spec: with these values.
        secrets: the values, for a process that has to hide them as well.
    """

    spec: Spec
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecretSource:
    """The secrets that a spec may use in this process.

    Attributes:
        variables: the names of environment variables that `{env:NAME}` may name.
        folder: the folder of the files that `{file:NAME}` may name; None allows no file.
    """

    variables: tuple[str, ...] = ()
    folder: Path | None = None

    def find_visible(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """All secrets that a process with this environment sees, named by its spec or not.

        From then on, redacted texts do not show them.
        """
        found = ((environment.get(name), os.environ.get(name)) for name in self.variables)
        values = tuple(value for value, own in found if value and value == own)
        hide(*values)
        return values

    def fill_in(self, spec: Spec) -> FilledSpec:
        """Read the secrets of a spec, and replace its placeholders with them; this may block.

        From then on, redacted texts do not show the values.

        Raises:
            SecretError: a name is not allowed or has no value here, or its value cannot be used where the
                placeholder is.
        """
        placeholders = frozenset(list_secrets(spec))
        if not placeholders:
            return FilledSpec(spec)
        values = {placeholder: self._read(placeholder) for placeholder in placeholders}
        _check_columns(spec, values)
        filled = _fill_in(spec, values)
        framed = [(filled.headers, filled.body)]
        framed += [(list_headers(filled, target), target.body) for target in filled.targets]
        if any(find_framing_fault(headers, body) for headers, body in framed):
            raise SecretError(
                f"with the value of {', '.join(sorted(placeholders))}, the headers contradict the body"
            )
        return FilledSpec(filled, tuple(sorted(values.values())))

    def _read(self, placeholder: str) -> str:
        kind, name = placeholder[1:-1].split(":")
        value = self._read_variable(name) if kind == "env" else self._read_file(name)
        reason = ""
        if not value:
            reason = "is empty"
        elif INDEX_PLACEHOLDER in value:
            reason = f"has {INDEX_PLACEHOLDER} in it, which would be taken for the index"
        elif LITERAL_MARK in value:
            reason = f"has {LITERAL_MARK} in it, which would be taken for a brace"
        elif any("\ud800" <= char <= "\udfff" for char in value):
            reason = "is not UTF-8"
        if reason:
            raise SecretError(f"{placeholder}: its value {reason}")
        hide(value)
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
            # Editors and `kubectl` often end a file with a line break that is not part of the secret.
            return content.decode().rstrip("\r\n")
        except SpecFileError as error:
            raise SecretError(f"{{file:{name}}}: {error}") from error
        except UnicodeDecodeError:
            raise SecretError(f"{{file:{name}}}: its value is not UTF-8") from None


@dataclass(frozen=True)
class SpecSources:
    """What a spec may read on the worker's side.

    Attributes:
        files: reads the files that the spec names.
        secrets: reads the secrets that the spec names.
    """

    files: SpecFiles = NOWHERE
    secrets: SecretSource = SecretSource()


NO_SOURCES = SpecSources()
"""Allows nothing; for workers whose operator has not allowed anything."""


def reads_sources(spec: Spec) -> bool:
    """Whether a spec names files or secrets, which the worker reads anew for each run."""
    return any((spec.cacert, spec.cert, spec.key, *list_files(spec), *list_secrets(spec)))


def list_secrets(spec: Spec) -> Iterator[str]:
    """Yield the placeholders of a spec that stand for secrets."""
    texts = [*spec.urls, *spec.headers, spec.base_url or "", spec.proxy or "", spec.body or ""]
    for target in spec.targets:
        texts += [target.url, *target.headers, target.body or ""]
    for text in texts:
        yield from (found[0] for found in SECRET_PLACEHOLDER.finditer(text))


def _check_columns(spec: Spec, values: Mapping[str, str]) -> None:
    for placeholder, value in values.items():
        if not set(spec.columns).isdisjoint(list_names(value)):
            raise SecretError(f"{placeholder}: its value has braces in it, which would be taken for a column")


def _fill_in(spec: Spec, values: Mapping[str, str]) -> Spec:
    in_url = _replacing(lambda placeholder: quote(values[placeholder], safe=""))
    in_header = _replacing(lambda placeholder: _check_header_value(placeholder, values[placeholder]))
    in_body = _replacing(values.__getitem__)
    in_json = _replacing(lambda placeholder: msgspec.json.encode(values[placeholder]).decode()[1:-1])

    def fill_in_target(target: Target) -> Target:
        return msgspec.structs.replace(
            target,
            url=in_url(target.url),
            headers=tuple(Header(in_header(header)) for header in target.headers),
            body=target.body and (in_json if target.is_json else in_body)(target.body),
        )

    return msgspec.structs.replace(
        spec,
        urls=tuple(Url(in_url(url)) for url in spec.urls),
        headers=tuple(Header(in_header(header)) for header in spec.headers),
        base_url=spec.base_url and Url(in_url(spec.base_url)),
        targets=tuple(map(fill_in_target, spec.targets)),
        proxy=spec.proxy and Url(in_url(spec.proxy)),
        body=spec.body and in_body(spec.body),
    )


def _replacing(find: Callable[[str], str]) -> Callable[[str], str]:
    def replace(text: str) -> str:
        if isinstance(text, FileText):
            return FileText(SECRET_PLACEHOLDER.sub(lambda found: read_body(write_body(find(found[0]))), text))
        return SECRET_PLACEHOLDER.sub(lambda found: find(found[0]), text)

    return replace


def _check_header_value(placeholder: str, value: str) -> str:
    if _CONTROL.search(value):
        raise SecretError(
            f"{placeholder}: its value has a line break or control character, which no header may have"
        )
    return value
