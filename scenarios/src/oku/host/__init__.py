"""The host: the process beside a worker that runs user code."""
