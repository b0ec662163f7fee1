"""Short unless `--fuzz-scale` says otherwise; what CI tries is the same each time, a long search is not."""

import random

import pytest
from hypothesis import settings

_EXAMPLES = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long to search."""
    parser.addoption("--fuzz-scale", type=int, default=1, help="how many times as many examples")
    parser.addoption("--fuzz-seed", type=int, help="what a long search begins with; random unless given")


def pytest_configure(config: pytest.Config) -> None:
    """Tell hypothesis."""
    scale = config.getoption("--fuzz-scale")
    settings.register_profile(
        "fuzz", max_examples=_EXAMPLES * scale, deadline=None, derandomize=scale == 1, database=None
    )
    settings.load_profile("fuzz")


@pytest.fixture(scope="session")
def scale(pytestconfig: pytest.Config) -> int:
    """How many times as many examples."""
    given: int = pytestconfig.getoption("--fuzz-scale")
    return given


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config, scale: int) -> int:
    """What examples are made of; a failure names it."""
    given: int | None = pytestconfig.getoption("--fuzz-seed")
    if given is not None:
        return given
    return 0 if scale == 1 else random.randrange(2**32)
