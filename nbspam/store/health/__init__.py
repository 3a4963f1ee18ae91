"""Looking after a model: checking its files, repairing them, and saying who can read them."""
