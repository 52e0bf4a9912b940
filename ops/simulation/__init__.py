"""Simulated browsers, policies and training behind the ports of the real ones: volume without Chromium, vLLM or torch."""
