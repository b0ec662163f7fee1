"""The sections of docs/benchmarks.md, one module for each benchmark."""
