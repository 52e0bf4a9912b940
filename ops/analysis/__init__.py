"""Computes what stored episodes come to: reports, evaluations, judge calibration and judging again."""
