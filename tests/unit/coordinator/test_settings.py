from pathlib import Path

from oku_coordinator.settings import CoordinatorSettings


def test_the_ledger_lies_in_the_data_folder() -> None:
    """Its name does not change."""
    settings = CoordinatorSettings(
        broker_url="redis://", message_key=b"k" * 16, data_dir=Path("data"), token="t"
    )
    assert settings.ledger_path == Path("data/ledger.sqlite3")
