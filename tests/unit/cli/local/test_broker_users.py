import hashlib

from oku_cli.local.broker_users import COORDINATOR, USERS_FILE, WORKERS, build_users


def test_the_broker_knows_digests_of_passwords() -> None:
    """Of both users, and nobody else may connect; what is in its memory opens nothing."""
    passwords = {COORDINATOR: "one", WORKERS: "two"}
    lines = build_users(passwords).splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["user", "default", "off"], ["user", "coordinator", "on"], ["user", "workers", "on"],
    ]  # fmt: skip
    assert [line.split()[3] for line in lines[1:]] == [
        f"#{hashlib.sha256(password.encode()).hexdigest()}" for password in passwords.values()
    ]


def test_the_rights_are_those_of_the_file() -> None:
    """The chart has the same."""
    given = [line.split()[4:] for line in build_users({COORDINATOR: "one", WORKERS: "two"}).splitlines()]
    assert given == [line.split()[4:] for line in USERS_FILE.read_text().splitlines()]
