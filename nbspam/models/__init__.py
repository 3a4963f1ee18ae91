"""The models: one module a leaf, imported by name, so that only one is loaded."""
