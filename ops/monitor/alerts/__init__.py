"""Raises alerts: a condition that has held for a while, and what its rules are given to look at. Pure."""
