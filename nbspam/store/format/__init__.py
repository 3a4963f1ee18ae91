"""The bytes of model files and journals.

Secret: both formats, and what a hostile or damaged file may contain.
"""
