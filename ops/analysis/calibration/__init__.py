"""Compares a judge's stored judgements with labels of people, or with those of another rubric."""
