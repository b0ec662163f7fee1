"""The simulation finds what it is there to find: the code is broken on purpose, and a seed breaks a law."""

import pytest
from tests.simulation.mutation import Finding, describe, find, list_mutants, mutated

_SEEDS = 1000
_QUICK = ("count-a-death-without-the-limit", "fold-a-part-twice", "begin-without-the-lock")
"""Those that a test run looks for; `./task simulate:mutants` looks for all."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", _QUICK)
def test_a_mutant_is_found(mutant: str) -> None:
    """Within a thousand seeds, by a law and not by code that cannot run."""
    finding: Finding = find(mutant, _SEEDS)
    assert finding.seed is not None
    assert finding.law.startswith("LawBrokenError: ")


@pytest.mark.parametrize("mutant", list_mutants())
def test_a_mutant_fits_the_code_and_says_what_is_wrong(mutant: str) -> None:
    """Its patch applies, and begins with a sentence."""
    assert describe(mutant).endswith(".")
    with mutated(mutant):
        pass
