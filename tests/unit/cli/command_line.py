"""Calls `oku` in this process, as its command does."""

import pytest

from oku_cli.main import main


def call_oku(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    """The exit code of `oku` with these arguments."""
    monkeypatch.setattr("sys.argv", ["oku", *arguments])
    with pytest.raises(SystemExit) as ending:
        main()
    return ending.value.code
