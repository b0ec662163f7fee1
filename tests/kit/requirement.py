"""What a test needs of the machine and does not find there."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

NOTES_VARIABLE = "OKU_TEST_SKIPPED"
"""Names the file in which CI notes what it skips, where the machine may lack something (`.ci/run`)."""


def miss(text: str) -> NoReturn:
    """Skip the test; in CI note it, or fail the test where nothing may be missing."""
    if notes := os.environ.get(NOTES_VARIABLE):
        with Path(notes).open("a") as file:
            file.write(f"{text}\n")
    elif os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)
