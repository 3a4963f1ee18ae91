"""The classifier: from counts of messages to verdicts."""
