import pytest

from oku_cli.options.daemon.retention_options import read_retention_variables
from oku_core.errors import UserError


def test_variables_are_handed_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that are set are passed on, empty ones are not."""
    monkeypatch.setenv("OKU_KEEP_RUNS", "100")
    monkeypatch.setenv("OKU_KEEP_FOR", "30d")
    assert read_retention_variables() == {"OKU_KEEP_RUNS": "100", "OKU_KEEP_FOR": "30d"}
    monkeypatch.setenv("OKU_KEEP_RUNS", "")
    monkeypatch.delenv("OKU_KEEP_FOR")
    assert read_retention_variables() == {}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OKU_KEEP_RUNS", "many", "OKU_KEEP_RUNS: many is not a number of runs"),
        ("OKU_KEEP_RUNS", "-1", "OKU_KEEP_RUNS: -1 is not a number of runs"),
        ("OKU_KEEP_FOR", "soon", "OKU_KEEP_FOR: "),
        ("OKU_KEEP_FOR", "1s", "OKU_KEEP_FOR: 1s is not between 1m and 36500d"),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    """The error comes before anything is started."""
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError) as refused:
        read_retention_variables()
    assert str(refused.value).startswith(said)
