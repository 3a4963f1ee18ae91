"""Mail accounts over IMAP.  Secret: what servers say, and how little of it is believed.

Everything above sees folders, UIDs, flags and bytes.  Nothing is ever marked as read.
"""
