"""What takes most of a request's time in Python, compiled; without a compiler, Python does the same."""
