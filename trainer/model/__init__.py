"""The model as training computes it: packed micro-batches in, log-probabilities of completion tokens out."""
