"""Counting one corpus in several places: each counts a share of it, and all shares are gathered.

Secret: how what the shares have in common counts once, though none of them knows of the others.
"""
