"""Sources: files, folders and mailboxes that hold mail, texts or tables.

Secret: how the formats (Maildir, mbox, CSV, JSON lines, ...) are recognised and read.  Other rooms
see `Item`s, each with a name, a label and bytes, and `Record`s of cells.
"""
