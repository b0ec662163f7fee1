"""The benchmarks: `./task bench` measures, `docs/benchmarks/` has the numbers, `docs/benchmarks.md` shows them.

Everything is on this machine and over loopback. Who is measured runs in a process of its own and is watched
from outside: processor time and memory from /proc, requests from what the delay server counted.
"""
