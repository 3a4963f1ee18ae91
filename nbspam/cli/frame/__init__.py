"""What is around every command: a configuration file, progress bars, and pages for people."""
