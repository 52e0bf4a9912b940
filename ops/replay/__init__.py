"""Writes stored episodes into another run, to be consumed, judged again or trained on."""
