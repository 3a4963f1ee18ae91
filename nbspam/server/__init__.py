"""The server: verdicts and lessons over the protocols that mail systems speak already.

Secret: how messages wait for their verdict, and which processes and threads do the work.
"""
