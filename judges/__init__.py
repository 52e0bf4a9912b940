"""Judges: finished trajectories in, judgements out."""
