"""Pages of HTML for people: a report in one file that needs no network and no script.

Secret: how results become markup, and that nothing in a message becomes any.
"""
