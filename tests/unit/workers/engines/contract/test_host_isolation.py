from oku_workers.engines.contract.user_code_host import choose_environment

WORKERS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "TZ": "UTC",
    "PATHS": "no such thing",
    "DATABASE_PASSWORD": "hunter2",
    "REGION": "north",
    "OKU_BROKER_URL": "redis://me:hunter2@broker",
    "OKU_MESSAGE_KEY": "k" * 16,
    "CELERY_BROKER_URL": "redis://broker",
}


def test_user_code_sees_only_what_says_where_things_are() -> None:
    """A name is harmless as a whole, and not by what it begins with."""
    assert choose_environment(WORKERS).keys() == {"PATH", "HOME", "LC_ALL", "TZ"}
    # User code sees the variables that are named. A name that there is not is passed over.
    seen = choose_environment(WORKERS, ["REGION", "ZONE"])
    assert seen == choose_environment(WORKERS) | {"REGION": "north"}
    # No name opens the settings of oku. Neither their own, nor all.
    names = ["OKU_MESSAGE_KEY", "CELERY_BROKER_URL", "*"]
    assert choose_environment(WORKERS, names) == {
        name: value for name, value in WORKERS.items() if not name.startswith(("OKU_", "CELERY_"))
    }
