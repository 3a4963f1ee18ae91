"""What is around every command: a configuration file, and progress bars."""
