"""Places: where mail lies: folders, archives, parquet files, and URLs.

Secret: how messages are found there, and the libraries that reach them.
"""
