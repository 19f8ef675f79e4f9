"""What is claimed, the saved file, and the independent checker."""
