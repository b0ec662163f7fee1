"""Reads the files that a spec names, such as certificates.

Anyone who may submit a run chooses these paths, so a file is read only if it is in a folder that the operator
allows, and is a regular file of bounded size. Nothing outside these folders is touched, and the error is
always the same, so that it does not reveal which files exist. Files of the run are another matter: the user
who submitted it has sent them along.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from oku_core.errors import UserError, format_value
from oku_core.spec.request_template import list_headers
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef, FindFile, describe_file, find_file_reference
from oku_core.spec.values.request_content import MOST_BODY_BYTES, Header, find_framing_fault
from oku_core.spec.values.template import read_body

MOST_BYTES = 1 << 20
"""The largest file that is read, in bytes: four times the bundle of all public certificate authorities."""
TLS_FILE_KEYS = ("cacert", "cert", "key")
"""The keys of a spec that name files for TLS, by a path or as files of the run."""

_SEARCH_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class SpecFileError(UserError):
    """A file cannot be read or is not allowed; the message gives the reason without naming the file."""


def list_files(spec: Spec) -> Iterator[FileRef]:
    """Yield the files of the run that a spec names, one that several keys name several times."""
    bodies = (spec.body, *(target.body for target in spec.targets))
    for text in (*(getattr(spec, key) for key in TLS_FILE_KEYS), *bodies):
        if reference := find_file_reference(text):
            yield reference
    if spec.data is not None:
        yield from spec.data.list_files()
    if spec.scenario is not None:
        yield from (code.file for code in (spec.scenario, *spec.include))


def list_public_files(spec: Spec) -> Iterator[FileRef]:
    """Yield the files of the run that a spec names, but for its private key, whichever keys name it.

    A certificate may have its key in the same file, even one that is not used; so it is private, too.
    """
    named = map(find_file_reference, (spec.cert, spec.key))
    private = {file.digest for file in named if file is not None}
    yield from (file for file in list_files(spec) if file.digest not in private)


def _find_none(_: str) -> Path:
    raise SpecFileError("files of runs are not here")


@dataclass(frozen=True)
class SpecFiles:
    """Reads files from the folders that the operator allows, and files of runs.

    Attributes:
        folders: the allowed folders; everything below them is allowed, too.
        find: gives the path of a file of a run by its digest, or raises `SpecFileError`.
    """

    folders: tuple[Path, ...] = ()
    find: FindFile = field(default=_find_none, compare=False)

    def check(self, spec: Spec) -> None:
        """Check that a spec names files only in allowed folders; this looks at paths, never at the disk.

        Raises:
            UserError: a file is not in an allowed folder; the message names its key and path.
        """
        for key in TLS_FILE_KEYS:
            path = getattr(spec, key)
            if path is None or find_file_reference(path):
                continue
            if not self._is_named_below(path):
                raise UserError(f"{key}: {format_value(path)} cannot be used: {_refuse()}")

    def read(self, path: str) -> bytes:
        """Return the content of a file; this may block for as long as its file system does.

        Raises:
            SpecFileError: the file is not in an allowed folder, does not exist, is not a regular file, or is
                too large.
        """
        if reference := find_file_reference(path):
            return self._read_file_of_run(reference, MOST_BYTES)
        if not self._is_named_below(path):
            raise _refuse()
        try:
            real = Path(path).resolve()
            for folder in self.folders:
                root = folder.resolve()
                if real != root and real.is_relative_to(root):
                    return _read_below(root, real.relative_to(root))
        except OSError as error:
            raise SpecFileError(error.strerror or str(error)) from error
        raise _refuse()

    def fill_in_bodies(self, spec: Spec) -> Spec:
        """Replace each body that is a file of the run with its text; this may block.

        Raises:
            SpecFileError: it cannot be read, or is not what a body may be; the message names the file.
        """
        targets = tuple(
            msgspec.structs.replace(target, body=self._fill_in(target.body, list_headers(spec, target)))
            for target in spec.targets
        )
        return msgspec.structs.replace(spec, body=self._fill_in(spec.body, spec.headers), targets=targets)

    def _fill_in(self, written: str | None, headers: Sequence[Header]) -> str | None:
        reference = find_file_reference(written)
        if reference is None:
            return written
        place = f"body {describe_file(reference)} cannot be used"
        try:
            body = read_body(self._read_file_of_run(reference, MOST_BODY_BYTES))
        except SpecFileError as error:
            raise SpecFileError(f"{place}: {error}") from error
        if fault := find_framing_fault(headers, body):
            raise SpecFileError(f"{place}: {fault}")
        return body

    def _read_file_of_run(self, reference: FileRef, most: int) -> bytes:
        path = self.find(reference.digest)
        try:
            with path.open("rb") as file:
                content = file.read(most + 1)
        except OSError as error:
            raise SpecFileError(error.strerror or str(error)) from error
        if len(content) > most:
            raise _refuse_size(most)
        return content

    def _is_named_below(self, path: str) -> bool:
        if not Path(path).is_absolute() or not path.isprintable():
            return False
        named = Path(os.path.normpath(path))
        return any(
            named.is_relative_to(os.path.normpath(folder)) or named.is_relative_to(folder.resolve())
            for folder in self.folders
        )


NOWHERE = SpecFiles()
"""Allows no file; for processes whose operator has not allowed any folder."""
EVERYWHERE = SpecFiles((Path("/"),))
"""Allows every file; for processes that serve only the user who started them."""


def _refuse() -> SpecFileError:
    return SpecFileError("files are read only from the folders that --files-dir allows")


def _read_below(root: Path, name: Path) -> bytes:
    """Read a file by its resolved path; a part that has become a symbolic link since is not followed."""
    folder = os.open(root, _SEARCH_FOLDER)
    try:
        for part in name.parent.parts:
            below = os.open(part, _SEARCH_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        # Opening a device can have side effects, so the type is checked first.
        _require_readable(os.stat(name.name, dir_fd=folder, follow_symlinks=False))
        file = os.open(name.name, _READ_FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(file, "rb") as opened:
        _require_readable(os.fstat(file))
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:  # it has grown, or its file system does not report sizes
        raise _refuse_size(MOST_BYTES)
    return content


def _require_readable(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SpecFileError("it is not a regular file")
    if found.st_size > MOST_BYTES:
        raise _refuse_size(MOST_BYTES)


def _refuse_size(most: int) -> SpecFileError:
    return SpecFileError(f"it is larger than {most >> 20} MiB")
