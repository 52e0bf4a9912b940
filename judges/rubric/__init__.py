"""The judge that asks a model: staged questions about the evidence."""
