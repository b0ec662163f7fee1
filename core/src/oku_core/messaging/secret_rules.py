"""The rules for a token of the API and a key of messages, so that nobody can guess them."""

SHORTEST = 16
"""Characters of a token, bytes of a key."""
_LEAST_VARIED = 5
"""Different ones among them: of 16 random digits, one in 10,000 has fewer."""
HOW_TO_MAKE = "$(openssl rand -hex 32)"


def find_weakness(secret: bytes, unit: str) -> str:
    """What makes a secret too easy to guess, without showing it; empty if nothing does.

    Args:
        secret: without blanks and line breaks around it.
        unit: what messages call one byte of it, such as `characters`.
    """
    for count, least, what in (
        (len(secret), SHORTEST, unit),
        (len(set(secret)), _LEAST_VARIED, f"different {unit}"),
    ):
        if count < least:
            return f"has {count} of at least {least} {what}"
    return ""
