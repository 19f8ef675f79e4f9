"""Gradient descent on the definitions."""
