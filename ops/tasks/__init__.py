"""Task files: prepared from published benchmarks, checked, and counted."""
