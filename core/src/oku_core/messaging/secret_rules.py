"""What a token of the API or a key of messages must be like, so that nobody guesses it."""

SHORTEST = 16
"""Characters of a token, bytes of a key."""
_LEAST_VARIED = 5
"""Different ones among them: of 16 random digits, one in 10,000 has fewer."""
HOW_TO_MAKE = "$(openssl rand -hex 32)"


def find_weakness(secret: bytes, unit: str) -> str:
    """What makes a secret too easy to guess, without showing it; empty if nothing does.

    Args:
        secret: as it is used.
        unit: what it consists of, such as `characters`.
    """
    for count, least, what in (
        (len(secret), SHORTEST, unit),
        (len(set(secret)), _LEAST_VARIED, f"different {unit}"),
    ):
        if count < least:
            return f"has {count} of at least {least} {what}"
    return ""
