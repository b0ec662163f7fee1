"""Headers that say what no program would, for those that read numbers and dates in them."""

_NAMES = (
    "Range", "If-Range", "If-Modified-Since", "If-Unmodified-Since", "If-Match", "If-None-Match",
    "Accept", "Accept-Encoding", "Content-Type",
)  # fmt: skip
_VALUES = (
    "", "x", "bytes=99999999999999999999-", f"bytes={'9' * 5000}-", "bytes=\u0663-", "bytes=-0",
    "bytes=5-1", "bytes=--", "bytes=1-2,3-4", "\xb2", "nan", "*", '"a', "W/", "9" * 5000, ",;=,;=",
    "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 0000 00:00:00 GMT",
    "Mon, 99 Jan 2020 99:99:99 GMT", "Mon, 01 Jan 2020 00:00:00 +999999999",
    "Mon, 01 Jan 2020 00:00:99999999999999999999 GMT", "text/plain;q=1e999", "a/b;q=nan, */*;q=-1",
    "text/plain; charset=none-such",
)  # fmt: skip
NASTY_HEADERS = [(name, value) for name in _NAMES for value in _VALUES]
