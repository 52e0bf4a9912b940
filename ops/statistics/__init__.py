"""Computes what several reports show: shares with Wilson intervals, and the spread of values."""
