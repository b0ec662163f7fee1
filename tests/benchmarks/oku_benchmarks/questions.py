"""The six questions, and the benchmarks that answer each of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from oku_benchmarks import engines, leases, ledger, memory, parts, peers, rates, start
from oku_benchmarks.report import Plan, Report


@dataclass(frozen=True)
class Benchmark:
    """A benchmark; one that takes more than some minutes is only measured when it is named."""

    measure: Callable[[Plan], Report]
    is_long: bool = False
    rounds: int = 5

    @property
    def summary(self) -> str:
        """What it measures, in one line."""
        return (self.measure.__doc__ or "").strip()


QUESTIONS: Mapping[str, tuple[str, Mapping[str, Benchmark]]] = {
    "peers": (
        "How fast is Oku beside other load generators?",
        {
            "rate": Benchmark(peers.measure_rate),
            "answers": Benchmark(peers.measure_answers, is_long=True),
            "http2": Benchmark(peers.measure_http2, rounds=3),
            "user-code": Benchmark(peers.measure_user_code),
        },
    ),
    "engines": (
        "What does a request cost, with each engine and with user code, and is a rate kept?",
        {
            "cost": Benchmark(engines.measure_cost),
            "targets": Benchmark(engines.measure_targets),
            "rates": Benchmark(rates.measure_rates, rounds=2),
            "freeze": Benchmark(rates.measure_freeze),
        },
    ),
    "leases": (
        "Are all windows full, and is everything accounted once whoever dies?",
        {
            "cases": Benchmark(leases.measure_cases),
            "window": Benchmark(leases.measure_window),
            "no-delay": Benchmark(leases.measure_no_delay, is_long=True),
            "posts": Benchmark(leases.measure_posts, is_long=True),
        },
    ),
    "ledger": (
        "How large is the ledger, and what does the coordinator need for it?",
        {
            "requests": Benchmark(ledger.measure_requests),
            "workers": Benchmark(ledger.measure_workers, is_long=True),
            "parts": Benchmark(parts.measure_parts),
            "days": Benchmark(ledger.measure_days),
        },
    ),
    "memory": (
        "How much memory do workers and coordinator take?",
        {
            "run": Benchmark(memory.measure_run),
            "connections": Benchmark(memory.measure_connections),
            "streams": Benchmark(memory.measure_streams, rounds=3),
            "wide": Benchmark(memory.measure_wide),
            "abuse": Benchmark(memory.measure_abuse),
        },
    ),
    "start": (
        "How long does what users type take?",
        {
            "commands": Benchmark(start.measure_commands),
            "tools": Benchmark(start.measure_tools),
            "imports": Benchmark(start.measure_imports),
        },
    ),
}
BENCHMARKS: Mapping[str, Benchmark] = {
    name: benchmark for _, benchmarks in QUESTIONS.values() for name, benchmark in benchmarks.items()
}


def find_benchmarks(name: str) -> list[str]:
    """The benchmarks of a question but for the long ones, or the one of this name; empty if there is none."""
    if name in QUESTIONS:
        return [each for each, benchmark in QUESTIONS[name][1].items() if not benchmark.is_long]
    return [name] if name in BENCHMARKS else []


def list_questions() -> str:
    """All questions and benchmarks, a line each."""
    lines = []
    for name, (text, benchmarks) in QUESTIONS.items():
        lines.append(f"{name}: {text}")
        lines += [
            f"  {each:<12} {benchmark.summary}{' Only when named.' if benchmark.is_long else ''}"
            for each, benchmark in benchmarks.items()
        ]
    return "\n".join(lines)
