"""Versions of the model: written, announced, stored on the bus, kept or deleted, and returned to."""
