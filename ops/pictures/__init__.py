"""Draws what was played: where a policy pointed, an episode as a strip, an episode as a film."""
