"""Builds observations by value: screenshots, the marks in them, elements in reading order, trees as text."""
