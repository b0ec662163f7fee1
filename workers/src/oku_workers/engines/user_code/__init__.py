"""The engine of user code: hands iterations to a child process, the host, and counts what it reports."""
