"""The questions of published evaluators as text files: a folder is one version of one evaluator."""
