"""The policy: observations in, step requests out."""
