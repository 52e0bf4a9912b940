"""Layers of Qwen3-VL that compute the same as transformers' own, faster."""
