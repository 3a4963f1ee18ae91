"""What a mail program shows: style sheets, declarations, elements and how they look.

Secret: the subset of CSS and of HTML's tree that decides whether text can be read.
"""
