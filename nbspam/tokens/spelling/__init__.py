"""The spelling of words: which ways to write a word are the same word.

Secret: the normal form of text, which `normalize` defines and `forms` finds for many texts.
"""
