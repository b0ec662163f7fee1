"""How much a target may send for one response: no honest server comes near, and no engine holds more.

The engines of HTTP/1.1 read with `ResponseReader`, which ends a response that goes beyond with a
`protocol_error`; that of HTTP/2 has the same limits for headers.
"""

LONGEST_HEAD_BYTES = 65_536
"""All that comes before a body: blank lines, interim responses, status line and headers. A single header may
be as long (curl: 100 KiB, nginx: 8 KiB, aiohttp's own: 8 KiB)."""
MOST_HEADERS = 1000
"""Header lines of one response, interim or final (curl: 5000, nginx: 1000, aiohttp's own: 128)."""
LONGEST_FRAMING_BYTES = 65_536
"""What may come between two pieces of a chunked body, or after it: the size of a chunk, the trailers."""
LARGEST_BODY_BYTES = 2**40
"""Bodies are dropped as they arrive: this only ends what no honest server sends."""
