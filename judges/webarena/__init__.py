"""WebArena-Verified's own evaluators as a judge: the benchmark's package compares, in a process of its own."""
