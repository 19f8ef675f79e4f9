"""Exact and interval mathematics: no torch modules here."""
