"""Permutation-equivariant functions as networks with a certified worst-case error.

    import sumformer
    c = sumformer.construct("mean(exp(-norm2(x-y)))", epsilon=1e-3, d=2)
    y = c(X)                 # X: (batch, n, 2) in [0, 1]^2, any n
    c.save("density"); sumformer.verify("density")

Needs torch and numpy; what else a part needs is imported when that part is used.
"""

from sumformer import errors as errors
from sumformer import nn as nn
from sumformer.targets import Target as Target
from sumformer.targets import target as target
from sumformer.theorems.constructed import Construction as Construction
from sumformer.theorems.construction import construct as construct
from sumformer.theorems.construction import load as load
from sumformer.theorems.verification import verify as verify

__version__ = "0.1.0"
