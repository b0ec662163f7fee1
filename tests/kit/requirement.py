"""What a test needs of the machine and does not find there."""

import os
from typing import NoReturn

import pytest


def miss(text: str) -> NoReturn:
    """Skip the test, or fail it in CI, where nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)
