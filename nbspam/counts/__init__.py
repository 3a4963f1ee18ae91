"""Counts: everything that training remembers.

A model keeps how often each token occurs in each class (`CountTable`), the digest, class and day
of every message (`Ledger`), and some of the messages (`Sample`).  All of it adds: the counts of
batches, processes and machines give the same sum in any order.

Secret: how messages are counted in several processes, each once, and without rounding errors.
"""
