"""Mail: the shape of one message, read and written."""
