"""The bytes of model files and journals."""
