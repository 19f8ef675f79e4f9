"""Where floating point ends: overflow and underflow are counted, or the construction refuses."""

import pytest
import torch

import sumformer
from sumformer.errors import RefusedError


@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        ("mean(y) + 1e-20*(1e-20*exp(90*x))", "float32"),
        ("mean(exp(80*y)*exp(80*y))*1e-30*1e-30", "float32"),
        ("exp(60*x)*exp(60*mean(y))*1e-30", "float32"),
        ("1e39*mean(y)", "mixed"),
        ("0*exp(800*mean(y))", "float64"),
    ],
)
def test_a_value_that_may_overflow_is_refused(source, dtype):
    with pytest.raises(RefusedError):
        sumformer.construct(source, 1e300, d=1, dtype=dtype)


@pytest.mark.parametrize(
    ("source", "d", "box", "dtype"),
    [("norm(x - mean(y))", 2, "0:1e-25", "float32"), ("1e-24*mean(y)", 1, "0:1e-18", "mixed")],
)
def test_underflow_is_counted(source, d, box, dtype):
    c = sumformer.construct(source, 1e-3, d=d, box=box, dtype=dtype)
    upper = float(c.target.box.upper[0])
    X = (torch.rand(200, 3, d, dtype=torch.float64) * upper).float()
    X = X.clamp(max=torch.tensor(upper, dtype=torch.float32).nextafter(torch.tensor(0.0)))
    error = (c(X).double() - c.target(X.double())).abs().max()
    assert float(error) <= c.certificate.total


def test_padding_is_counted_and_checked():
    c = sumformer.construct("sum(y)", 1e-6, n=3)
    X = torch.rand(1, 10, 1, dtype=torch.float64)
    mask = torch.zeros(1, 10, dtype=torch.long)
    mask[0, [1, 4, 9]] = 1
    assert torch.allclose(c(X, attention_mask=mask)[0, 1], X[0, [1, 4, 9]].sum(0))
    mask[0, 0] = 1
    with pytest.raises(sumformer.errors.InputError, match="n = 4"):
        c(X, attention_mask=mask)
