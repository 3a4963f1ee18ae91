"""The store: a model on disk that learns on and loses nothing."""
