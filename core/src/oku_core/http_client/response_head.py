"""The headers of a response, read from its head as it was received."""

from multidict import CIMultiDict, CIMultiDictProxy


def split_headers(head: bytes) -> CIMultiDictProxy[str]:
    """All headers; bytes that are not UTF-8 become surrogates, so that no value is altered."""
    headers: CIMultiDict[str] = CIMultiDict()
    for line in _list_lines(head):
        name, colon, value = line.partition(b":")
        if colon:
            headers.add(_decode(name), _decode(value))
    return CIMultiDictProxy(headers)


def find_values(head: bytes, name: bytes) -> list[bytes]:
    """The values of one header, in their order.

    Args:
        head: status line and headers.
        name: in lower case.
    """
    at = head.lower().find(b"\n" + name)
    if at < 0:
        return []
    lines = [line.partition(b":") for line in _list_lines(head[at:])]
    return [value.strip(b" \t") for each, colon, value in lines if colon and each.strip().lower() == name]


def _list_lines(head: bytes) -> list[bytes]:
    """The lines of headers; one that goes on in the next line (RFC 9112, section 5.2) is put together."""
    unfolded = head.replace(b"\r\n", b"\n").replace(b"\n ", b" ").replace(b"\n\t", b" ")
    return unfolded.split(b"\n")[1:]


def _decode(text: bytes) -> str:
    return text.strip(b" \t").decode("utf-8", "surrogateescape")
