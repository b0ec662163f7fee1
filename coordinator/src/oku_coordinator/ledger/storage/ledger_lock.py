"""The right to write a ledger: a lock on a file beside it."""

from pathlib import Path

from oku_core.errors import UserError
from oku_core.process.private_files import FileLock, make_data_folder


def lock_ledger(path: Path, wait_s: float = 0.0, *, trusts_folder: bool = False) -> FileLock:
    """Acquire the right to write the ledger at `path`; its folder is made.

    Raises:
        UserError: another process holds it, or others may write the folder and it is not to be trusted.
    """
    try:
        make_data_folder(path.parent, is_trusted=trusts_folder)
        return FileLock(path.with_suffix(".lock"), wait_s)
    except BlockingIOError:
        raise UserError(f"{path}: another coordinator holds this ledger") from None
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
