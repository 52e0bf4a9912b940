"""Composition: the only package that names concrete classes; the command line, the supervisor, the quickstart."""
