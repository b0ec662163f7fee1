"""The benchmarks: six questions about cost and speed, each answered by tables in docs/benchmarks.md."""
