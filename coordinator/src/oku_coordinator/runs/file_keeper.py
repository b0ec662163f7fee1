"""Keeps each file as long as a run uses it: no run starts without its files, none outlives its runs."""

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
    """A spec names a file that its caller must upload first."""


class FileKeeper:
    """The files of the runs of a ledger.

    Args:
        ledger: records which run uses which file.
        store: stores the files.
    """

    def __init__(self, ledger: Ledger, store: FileStore) -> None:
        self._ledger = ledger
        self._store = store

    def check(self, spec: Spec) -> None:
        """Reject a spec with missing files, or with too many, with a `UserError`."""
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
        """Reject a spec whose caller does not prove to have its files, with a `UserError`.

        The message is the same for a missing file, so callers cannot probe for the files of others.

        Args:
            spec: the submitted spec.
            proofs: the proof of each of its files, by its digest.
        """
        for file in list_files(spec):
            if not self._store.is_proven(FileClaim(file.digest, proofs.get(file.digest, ""))):
                raise NotUploadedError(f"{file.name}: {_NOT_HERE}")

    def find(self, digest: str) -> Path:
        """The path of a stored file."""
        return self._store.find(digest)

    def release(self, digests: Iterable[str]) -> None:
        """Delete the files of a deleted run that no other run uses."""
        for digest in digests:
            with self._ledger.read() as t:
                found = submission_table.is_used(t, digest)
            if not found:
                self._store.delete(digest)

    def sweep(self) -> None:
        """Delete old uploads that no run uses."""
        with self._ledger.read() as t:
            used = submission_table.fetch_used(t)
        self._store.sweep(used)
