"""Layers of models that compute the same as transformers' own, faster."""
