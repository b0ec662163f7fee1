"""Keeps each file for as long as a run uses it: no run begins without its files, none outlives its runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from oku_coordinator.files.file_store import FileStore, FileTooLargeError, UnknownFileError
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables import submission_table
from oku_core.spec.files import list_files
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import PROOFS, FileClaim

_NOT_HERE = f"was not uploaded to this coordinator, or {PROOFS} has no proof that you have it"


class NotUploadedError(UnknownFileError):
    """A spec names a file that its caller has to upload first."""


class FileKeeper:
    """The files of the runs of a ledger.

    Args:
        ledger: says which run uses which file.
        store: has them.
    """

    def __init__(self, ledger: Ledger, store: FileStore) -> None:
        self._ledger = ledger
        self._store = store

    def check(self, spec: Spec) -> None:
        """Refuse a spec whose files are not here, or that has too many, with a `UserError`."""
        files = {file.digest: file for file in list_files(spec)}
        most = self._store.limits.most_per_run
        if len(files) > most:
            raise FileTooLargeError(
                f"the run uses {len(files)} files, and at most {most} are allowed"
                " (--max-run-files of the coordinator)"
            )
        for digest, file in files.items():
            size = self._store.claim_whole(digest)
            if size is None:
                raise NotUploadedError(f"{file.name}: {_NOT_HERE}")
            if size != file.size:
                raise UnknownFileError(f"{file.name}: has {size} bytes here, and {file.size} in the spec")

    def check_proofs(self, spec: Spec, proofs: Mapping[str, str]) -> None:
        """Refuse the spec of a caller who does not prove to have its files, with a `UserError`.

        A file that is not here is refused in the same words, so nobody learns what others have uploaded.

        Args:
            spec: what the caller submits.
            proofs: the proof of each of its files, by its digest.
        """
        for file in list_files(spec):
            if not self._store.is_proven(FileClaim(file.digest, proofs.get(file.digest, ""))):
                raise NotUploadedError(f"{file.name}: {_NOT_HERE}")

    def find(self, digest: str) -> Path:
        """The path of a file that is here."""
        return self._store.find(digest)

    def release(self, digests: Iterable[str]) -> None:
        """Delete those of the files of a run that was deleted that no other run uses."""
        for digest in digests:
            with self._ledger.read() as t:
                found = submission_table.is_used(t, digest)
            if not found:
                self._store.delete(digest)

    def sweep(self) -> None:
        """Delete what was uploaded a while ago and is used by no run."""
        with self._ledger.read() as t:
            used = submission_table.fetch_used(t)
        self._store.sweep(used)
