"""A person's account, sorted and learned from.  Secret: how a message is known again elsewhere."""
