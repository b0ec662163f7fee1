"""The users of the local broker: the coordinator and the workers, each with the rights that its part needs.

Anyone who may open the broker's socket, user code among them, can do nothing there without a password. The
passwords are made anew for each stack and are in no file; the broker itself knows only their digests.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

COORDINATOR, WORKERS = "coordinator", "workers"
USERS_FILE = Path(__file__).with_name("users.acl")
"""The users and their rights, as the chart's Valkey has them; `>USER_PASSWORD` stands for a password."""


def build_users(passwords: Mapping[str, str]) -> str:
    """Build the lines of a configuration with these users.

    Args:
        passwords: random ones, by user.
    """
    users = USERS_FILE.read_text()
    for user, password in passwords.items():
        digest = hashlib.sha256(password.encode()).hexdigest()
        users = users.replace(f">{user.upper()}_PASSWORD", f"#{digest}")
    return users
