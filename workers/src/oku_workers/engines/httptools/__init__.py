"""The engine for throughput: protocols of uvloop and the parser of httptools."""
