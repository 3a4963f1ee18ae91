"""The bytes of model files and journals.

Secret: where each array is in a file, and how a file that was damaged or cut off is recognised.
The rest of the store reads and writes plain values.
"""
