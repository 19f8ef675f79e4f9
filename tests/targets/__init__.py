"""Tests of sumformer.targets."""
