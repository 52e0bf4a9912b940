"""Benchmarks whose published tasks are known here: one file each, which says what becomes of every field."""

from importlib import import_module

from ops.tasks.mapping import Benchmark

NAMES = ("webgym", "openwebrl", "online-mind2web", "webvoyager", "deepshop", "webarena-verified", "webtailbench")


def benchmark(name: str) -> Benchmark:
    found: Benchmark = import_module(f"{__name__}.{name.replace('-', '_')}").BENCHMARK
    return found
