"""What the contents of a model file must be: types, shapes, ranges and order, in one place.

The checksum says that a file is as it was written; this says that it was written by us.  The
classifiers rely on it, and check nothing themselves.  `tokens.check` is the way in.
"""
