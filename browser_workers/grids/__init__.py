"""Worlds on a square grid in which one figure walks: what their suites share.

A level is drawn from a seed in Python and played by its page; nothing is kept here.
"""
