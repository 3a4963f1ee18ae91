"""The store: models on disk that continue to learn.

A `StoredModel` learns, moves and un-learns messages; `open` loads and saves every kind of model;
the other modules merge, prune, check, export and import models.

Secret: a model is a file and a journal, written so that a crash loses no reported change.
"""
