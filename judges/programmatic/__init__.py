"""Judges that ask no model."""
