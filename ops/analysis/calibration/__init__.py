"""How far a judge can be trusted: its stored judgements against labels of people, or against those of another rubric."""
