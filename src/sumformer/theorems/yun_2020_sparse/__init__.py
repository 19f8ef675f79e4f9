"""Yun et al., "O(n) connections are expressive enough", NeurIPS 2020."""
