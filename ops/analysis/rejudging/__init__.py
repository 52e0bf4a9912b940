"""Judging stored trajectories again, by another judge or rubric version, beside the judgements that there are."""
