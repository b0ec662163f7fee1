"""What holds for each test: how properties are tried, and that no test leaves hidden values to others."""

import pytest
from hypothesis import HealthCheck, settings

from oku_core.process.secret_texts import SecretTexts

# On a busy machine neither an example nor its making has a time limit.
settings.register_profile("oku", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oku")


@pytest.fixture(autouse=True)
def _no_hidden_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process hides values until it ends, and cuts a long text wherever one of them may begin."""
    monkeypatch.setattr("oku_core.process.redaction._hidden", SecretTexts())
