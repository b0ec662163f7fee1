import pytest

from oku_cli.options.daemon.retention_options import read_kept_keys_s, read_retention_variables
from oku_coordinator.settings import RetentionRule
from oku_core.errors import UserError


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OKU_KEEP_RUNS", "many", "OKU_KEEP_RUNS: many is not a number of runs"),
        ("OKU_KEEP_RUNS", "-1", "OKU_KEEP_RUNS: -1 is not a number of runs"),
        ("OKU_KEEP_FOR", "soon", "OKU_KEEP_FOR: "),
        ("OKU_KEEP_FOR", "1s", "OKU_KEEP_FOR: 1s is not between 1m and 36500d"),
        ("OKU_KEEP_KEYS", "1s", "OKU_KEEP_KEYS: 1s is not between 1m and 36500d"),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    """The error comes before anything is started."""
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError) as refused:
        read_retention_variables()
    assert str(refused.value).startswith(said)


def test_variables_are_handed_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that are set are passed on, empty ones are not."""
    monkeypatch.setenv("OKU_KEEP_RUNS", "100")
    monkeypatch.setenv("OKU_KEEP_FOR", "30d")
    monkeypatch.setenv("OKU_KEEP_KEYS", "2h")
    assert read_retention_variables() == {
        "OKU_KEEP_RUNS": "100",
        "OKU_KEEP_FOR": "30d",
        "OKU_KEEP_KEYS": "2h",
    }
    monkeypatch.setenv("OKU_KEEP_RUNS", "")
    monkeypatch.setenv("OKU_KEEP_KEYS", "")
    monkeypatch.delenv("OKU_KEEP_FOR")
    assert read_retention_variables() == {}
    # A data folder keeps its keys as long as a coordinator.
    for value, kept_s in ((None, 30 * 86_400.0), ("", 30 * 86_400.0), ("2h", 7200.0)):
        if value is not None:
            monkeypatch.setenv("OKU_KEEP_KEYS", value)
        assert read_kept_keys_s() == kept_s
        assert value or RetentionRule().keep_keys_s == kept_s
    monkeypatch.setenv("OKU_KEEP_KEYS", "soon")
    with pytest.raises(UserError, match=r"^OKU_KEEP_KEYS: soon"):
        read_kept_keys_s()
