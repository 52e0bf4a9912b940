"""Limits what the pages of an episode may reach."""
