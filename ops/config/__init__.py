"""Composes a run's configuration from recipes, files and overrides, and explains every key: names, origins, meanings."""
