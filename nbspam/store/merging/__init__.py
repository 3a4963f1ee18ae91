"""Merging: one model of what several models, or the parts of one training, have counted.

`merge` is the way in.  `streams` adds up sorted tokens, whatever they belong to, with memory for a
block of them; `parts` puts the parts of a training together, `models` adds whole models.

Secret: that counts are added as sorted streams, and which copy of a message is kept.
"""
