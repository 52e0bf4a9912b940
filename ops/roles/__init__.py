"""Composes each role of its concrete parts, and runs it. Heavy packages load with the role that needs them."""
