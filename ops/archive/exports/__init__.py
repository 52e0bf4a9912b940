"""Stored episodes for other tools: which are chosen, how they are read, and the folder that is there whole or not at all."""
