"""What a caller knows of a file whose content is in memory."""

from oku_core.spec.values.file_reference import FileClaim, FileHash


def build_claim(content: bytes) -> FileClaim:
    """Digest and proof of a content."""
    found = FileHash()
    found.update(content)
    return found.claim
