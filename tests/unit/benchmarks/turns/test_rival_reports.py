import json

from oku_benchmarks.turns.rival_reports import (
    Reported,
    read_fortio,
    read_h2load,
    read_hey,
    read_k6,
    read_oha,
    read_vegeta,
    read_wrk2,
)


def test_wrk2_prints_its_quantiles_with_units() -> None:
    """The columns of the threads and of the spectrum are none."""
    text = """\
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.01ms  776.85us   9.99ms   82.87%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%  587.00us
 99.000%    1.81s
 99.900%    1.90s
100.000%    2.00s

       5.083     0.000000            2         1.00
#[Mean    =        6.014, StdDeviation   =        0.777]
  11800 requests in 12.00s, 0.88MB read
"""
    assert read_wrk2(text) == Reported(requests=11_800, p50_ms=0.587, p99_ms=1810, max_ms=2000)


def test_h2load_prints_the_slowest_request_and_no_percentile() -> None:
    """Those that were done count."""
    text = """\
requests: 5010 total, 5005 started, 5000 done, 5000 succeeded, 0 failed, 0 errored, 0 timeout
                     min         max         mean         sd        +/- sd
time for request:     5.26ms       1.01s     26.75ms    139.89ms    98.00%
"""
    assert read_h2load(text) == Reported(requests=5_000, max_ms=1010)


def test_hey_prints_seconds() -> None:
    """And counts by status."""
    text = """\
  Slowest:	0.9162 secs
Latency distribution:
  50%% in 0.0058 secs
  99%% in 0.9135 secs
Status code distribution:
  [200]	4200 responses
"""
    assert read_hey(text) == Reported(requests=4_200, p50_ms=5.8, p99_ms=913.5, max_ms=916.2)


def test_oha_writes_seconds() -> None:
    """What was aborted at the end is no request."""
    document = {
        "summary": {"slowest": 1.00396},
        "latencyPercentiles": {"p50": 0.0050717, "p99": 0.9556308},
        "statusCodeDistribution": {"200": 4_999},
        "errorDistribution": {"aborted due to deadline": 3},
    }
    assert read_oha(json.dumps(document)) == Reported(
        requests=4_999, p50_ms=5.072, p99_ms=955.631, max_ms=1003.96
    )


def test_vegeta_writes_nanoseconds() -> None:
    """`vegeta report` has them by name."""
    document = {
        "latencies": {"50th": 5_178_181, "99th": 956_751_897, "max": 1_004_471_854},
        "requests": 5_000,
    }
    assert read_vegeta(json.dumps(document)) == Reported(
        requests=5_000, p50_ms=5.178, p99_ms=956.752, max_ms=1004.472
    )


def test_fortio_writes_a_histogram() -> None:
    """With the percentiles that it was asked for."""
    percentiles = [{"Percentile": 50, "Value": 0.005609}, {"Percentile": 99, "Value": 0.887363}]
    document = {"DurationHistogram": {"Count": 5_000, "Max": 1.007995, "Percentiles": percentiles}}
    assert read_fortio(json.dumps(document)) == Reported(
        requests=5_000, p50_ms=5.609, p99_ms=887.363, max_ms=1007.995
    )


def test_k6_says_what_it_left_out() -> None:
    """It says nothing when it left out nothing."""
    duration = {"med": 5.1737, "p(99)": 968.225656, "max": 1005.148774}
    metrics = {"http_req_duration": duration, "http_reqs": {"count": 4_096}}
    complete = read_k6(json.dumps({"metrics": metrics}))
    dropped = read_k6(json.dumps({"metrics": metrics | {"dropped_iterations": {"count": 905}}}))

    assert complete == Reported(requests=4_096, p50_ms=5.174, p99_ms=968.226, max_ms=1005.149, left_out=0)
    assert dropped.left_out == 905
