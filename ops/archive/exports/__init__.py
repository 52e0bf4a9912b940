"""Stored episodes in the formats of other tools, one module a format. What is written depends on the episodes alone."""
