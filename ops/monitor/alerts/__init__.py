"""Raises alerts: conditions judged from a monitor's state, with what an operator should do. Pure."""
