"""Faster evaluation of a definition, for NVIDIA GPUs through Triton; its naive twin, in torch, runs everywhere else.

Nothing here knows the modules: `sumformer.nn` calls these operators where they apply. `SUMFORMER_KERNELS=0` switches
them off.
"""
