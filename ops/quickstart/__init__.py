"""Trains a tiny model made on the spot, from nothing to the curve, on this machine."""
