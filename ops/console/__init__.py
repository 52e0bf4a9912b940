"""Reads and writes the terminal: tables, JSON lines, times, output folders, and how Ctrl-C ends a command."""
