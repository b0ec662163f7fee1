"""The benchmarks, one module each: what is run and what is measured."""
