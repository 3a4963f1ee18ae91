"""Mail accounts over IMAP.  Secret: the servers' answers, and how little of them is believed.

Everything above sees folders, UIDs, flags and bytes.  Nothing is ever marked as read.
"""
