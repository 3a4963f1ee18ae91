"""Columns: models of columns that hold categories and numbers."""
