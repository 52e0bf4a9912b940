"""Proves a run's promises from its streams alone: what was stored, in which order, and when."""
