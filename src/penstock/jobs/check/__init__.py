"""What is in files, whether it is intact, and copies of what is."""
