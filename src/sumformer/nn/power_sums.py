"""p_β(X) = Σ_k x_k^β, or Σ_k Π_c T_{β_c}(t_kc), for all 0 < |β| ≤ m: without ever holding d' numbers per token.

|p̂_β − p_β| ≤ 1e-6 · Σ_k |φ_β(x_k)| + the error of the features. They are made in the dtype of x or in float64, u its
unit roundoff: a power tᵐ is within m u |tᵐ|; T_m(t) within 2 m² u for |t| ≤ 1 (of float64 tokens 3 m² u), and as far
again as m² times the error of t, which takes one rounding. A product over coordinates adds the relative errors of its
factors, and one rounding each. All that as long as no value, product or sum overflows that dtype or, of powers, is so
small as to be subnormal in it.
"""

from __future__ import annotations

from math import inf, isfinite

import torch
from torch import Tensor
from torch.autograd import forward_ad

from sumformer.errors import InputError
from sumformer.kernels import power_sums as kernel
from sumformer.kernels.calling import watched
from sumformer.nn.inputs import check_tokens, keep_from_attention_mask
from sumformer.nn.polynomial_features import BASES


def power_sums(
    x: Tensor, degree: int, basis: str = "monomial", lower: float = 0.0, upper: float = 1.0, keep: Tensor | None = None
) -> Tensor:
    """x (batch, n, d), d ≤ 4 → (batch, d') in float64, in the order of `multi_indices`; `keep` (batch, n) as a mask.

    With `basis="chebyshev"` lower … upper is mapped to [−1, 1]. What is hidden may hold NaN. Gradients are not defined.
    """
    check_tokens("power_sums", x)
    d = x.shape[2]
    if not 1 <= d <= 4 or not 1 <= degree <= kernel.HIGHEST or basis not in BASES or not lower < upper:
        raise InputError(
            f"power_sums: expected 1 ≤ d ≤ 4, degree 1 … {kernel.HIGHEST}, basis in {BASES} and lower < upper, "
            f"got d = {d}, {degree}, {basis!r}, {lower}, {upper}"
        )
    if forward_ad._current_level >= 0:
        raise InputError("power_sums: derivatives are not defined; call it outside of forward-mode differentiation")
    chebyshev = basis == "chebyshev"
    centre, inverse = ((lower + upper) / 2, 2 / (upper - lower)) if chebyshev else (0.0, 1.0)
    if not isfinite(centre * inverse) or not 0 < inverse < inf:
        raise InputError(f"power_sums: expected lower and upper to be finite and apart, got {lower}, {upper}")
    keep = keep_from_attention_mask("power_sums: keep", x, keep)
    if keep is not None and keep.device != x.device:
        raise InputError(f"power_sums: expected keep on {x.device}, as x is, got {keep.device}")
    x = x if x.dtype == torch.float64 else x.float()
    arguments = (x, keep, degree, chebyshev, centre, inverse)
    if watched(x) or (torch.is_grad_enabled() and x.requires_grad):
        out: Tensor = torch.ops.sumformer.power_sums(*arguments)
        return out
    return kernel.summed(*arguments)
