"""Sources: how mail, texts and tables are stored, and what stands in them."""
