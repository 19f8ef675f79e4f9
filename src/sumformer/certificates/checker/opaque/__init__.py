"""The check of a grid network for a function of which only the name is saved."""
