"""The benchmarks, one module or package each: samples, sessions and the official metric."""
