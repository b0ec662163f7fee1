"""What a target may send at the most for one response; no honest server comes near, and no engine holds more.

Both engines read with `ResponseReader`, which ends a response that goes beyond with a `protocol_error`.
"""

LONGEST_HEAD_BYTES = 65_536
"""All that comes before a body: blank lines, interim responses, status line and headers. One line of a header
may be as long as that (curl: 100 KiB, nginx: 8 KiB, aiohttp's own: 8 KiB)."""
MOST_HEADERS = 1000
"""Lines of headers of one response, interim or final (curl: 5000, nginx: 1000, aiohttp's own: 128)."""
LONGEST_FRAMING_BYTES = 65_536
"""What may come between two pieces of a chunked body, or after it: the line of a chunk, the trailers."""
LARGEST_BODY_BYTES = 2**40
"""Bodies are dropped as they come: this only ends what no honest server sends."""
