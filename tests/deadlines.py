"""How long a test waits for what has to come: a guard against hanging, and never a statement about speed."""

HANGS_S = 900.0
"""Generous to a machine on which much else runs; `timeout` in pyproject.toml ends a test that waits several times."""
