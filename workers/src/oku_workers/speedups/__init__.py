"""The hot path of a request, compiled; without a compiler, Python does the same."""
