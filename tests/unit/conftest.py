"""What holds for each test: how properties are tried, and that no test hides values from others."""

from hypothesis import HealthCheck, settings

from oku_core.process import redaction
from oku_core.process.secret_texts import SecretTexts

# On a busy machine neither an example nor its making has a time limit.
settings.register_profile("oku", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oku")

_NOTHING_HIDDEN = SecretTexts()


def pytest_runtest_setup() -> None:
    """A process hides values until it ends, and cuts a long text wherever one of them may begin."""
    vars(redaction)["_hidden"] = _NOTHING_HIDDEN
