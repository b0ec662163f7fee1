"""The benchmarks: `./task bench` measures and writes docs/benchmarks.md; the numbers lie in docs/benchmarks/.

Everything is on this machine and over loopback. Who is measured runs in a process of its own and is watched
from outside: processor time and memory from /proc, requests from what the target counted.
"""
