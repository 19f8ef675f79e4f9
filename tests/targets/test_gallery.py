"""Gallery: every entry is a target, is equivariant, and is of the kind it says."""

import pytest
import torch

from sumformer.errors import InputError
from sumformer.targets import GALLERY, Binary, Extremum, Norm, Power, Reduce, Unary, from_gallery, postorder, target

ENTRIES = pytest.mark.parametrize("entry", GALLERY.values(), ids=GALLERY)


def size(tokens):
    return tokens.minimum if tokens.exact else 6


@ENTRIES
def test_every_entry_evaluates_and_is_equivariant(entry):
    t = entry.build()
    n = size(t.tokens)
    X = torch.rand(2, n, t.d, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value = t(X)
    value.sum().backward()
    assert value.isfinite().all()
    assert X.grad.isfinite().all()
    order = torch.randperm(n, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(t(X[:, order]), value[:, order])
    assert target(t.source, n=str(t.tokens), d=t.d) == t


@ENTRIES
def test_the_kind_is_right(entry):
    parts = postorder(entry.build().expression)
    reduced = [p for r in parts if isinstance(r, Reduce) for p in postorder(r.body)]
    rough = any(isinstance(p, Norm | Extremum) or (isinstance(p, Unary) and p.fn == "abs") for p in reduced)
    rough = rough or any(isinstance(p, Reduce) and p.kind in ("max", "min") for p in parts)
    polynomial = not rough and not any(
        isinstance(p, Unary | Norm)
        or (isinstance(p, Binary) and p.op == "/")
        or (isinstance(p, Power) and p.exponent < 0)
        for p in parts
    )
    assert entry.kind == ("lipschitz" if rough else "exact" if polynomial else "sums")
    assert entry.meaning


def test_figure_2_is_the_papers_function():
    X = torch.rand(4, 3, 3, dtype=torch.float64)
    x1, x2, x3 = X.unbind(1)
    expected = x1 + 7 * x1**2 + 3 * x1 * (x2 + x3) ** 3
    torch.testing.assert_close(from_gallery("figure_2", d=3)(X)[:, 0], expected)


def test_defaults_can_be_changed():
    t = from_gallery("nadaraya_watson", d=5, n="..20", box="-1:1")
    assert (t.d, t.width, str(t.tokens), str(t.box)) == (5, 1, "..20", "-1:1")
    with pytest.raises(InputError, match="d ≥ 2"):
        from_gallery("nadaraya_watson", d=1)
    with pytest.raises(InputError, match="expected one of"):
        from_gallery("nothing")
    assert len(GALLERY) >= 16
