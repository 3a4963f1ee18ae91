"""Models of table columns that hold categories or numbers, with missing values.

Secret: one index runs over the values of all columns, so that counts are flat arrays.
"""
