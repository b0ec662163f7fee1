"""The engine for HTTP/2: protocols of uvloop over libnghttp2."""
