"""construct, save, load, and what a Construction refuses."""

import json

import pytest
import torch

import sumformer
from sumformer.errors import (
    DomainError,
    DtypeError,
    FileFormatError,
    InputError,
    OutsideBoxError,
    RefusedError,
    ShapeError,
    TargetError,
)
from sumformer.gadgets.elementary import elementary
from sumformer.gadgets.reading import Reading

GAUSS = "sum(exp(-norm2(x-y))*y)/sum(exp(-norm2(x-y)))"
FIGURE_2 = "x + 7*x**2 + 3*x*sum_others(y)**3"


@pytest.fixture(scope="module")
def gauss():
    return sumformer.construct(GAUSS, 1e-3, d=2)


def test_figure_2_needs_d_features(tmp_path):
    c = sumformer.construct(FIGURE_2, 1e-6, d=4, n=3)
    assert c.certificate.route == "exact"
    assert c.certificate.latent_dimension == 4
    assert c.proof_latent_dimension == 34
    assert c.certificate.total < 1e-9
    X = torch.rand(8, 3, 4, dtype=torch.float64)
    assert float((c(X) - c.target(X)).abs().max()) <= c.certificate.total


def test_terms_add_up_to_the_total_below_epsilon(gauss):
    certificate = gauss.certificate
    assert sum(t.bound for t in certificate.terms) == pytest.approx(certificate.total, rel=1e-12)
    assert certificate.total <= certificate.epsilon
    assert {t.kind for t in certificate.terms} <= {"proved", "enclosed", "rounding"}
    assert certificate.assumptions


def test_one_network_serves_every_n(gauss):
    for n in (1, 2, 17, 5000):
        X = torch.rand(1, n, 2, dtype=torch.float64)
        assert float((gauss(X) - gauss.target(X)).abs().max()) <= gauss.certificate.total


def test_save_and_load(gauss, tmp_path):
    gauss.save(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"config.json", "model.safetensors", "certificate.json"}
    again = sumformer.load(tmp_path)
    X = torch.rand(2, 9, 2, dtype=torch.float64)
    assert torch.equal(again(X), gauss(X))
    assert again.certificate.total == gauss.certificate.total
    assert again.target == gauss.target


def test_loading_what_is_not_a_construction(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        sumformer.load(tmp_path)
    (tmp_path / "certificate.json").write_text("[]")
    with pytest.raises(FileFormatError, match="JSON object"):
        sumformer.load(tmp_path)
    (tmp_path / "certificate.json").write_text(json.dumps({"target": "x"}))
    with pytest.raises(FileFormatError, match="not a certificate"):
        sumformer.load(tmp_path)


def test_tokens_outside_the_box_are_refused_by_name(gauss):
    X = torch.rand(2, 5, 2, dtype=torch.float64)
    X[1, 3, 0] = 1.5
    with pytest.raises(OutsideBoxError) as error:
        gauss(X)
    assert error.value.index == (1, 3)
    assert torch.isfinite(gauss.network(X)).all()


def test_queries_against_weighted_sources(gauss):
    x, z = torch.rand(1, 4, 2, dtype=torch.float64), torch.rand(1, 6, 2, dtype=torch.float64)
    w = torch.tensor([[1.0, 2, 3, 1, 1, 5]], dtype=torch.float64)
    copies = z.repeat_interleave(w[0].long(), dim=1)
    wanted = gauss.target(x, sources=copies)
    assert float((gauss(x, sources=z, weights=w) - wanted).abs().max()) <= gauss.certificate.total
    assert float((gauss(x, sources=copies) - wanted).abs().max()) <= gauss.certificate.total


def test_sources_of_another_batch_are_refused(gauss):
    x = torch.rand(2, 3, gauss.target.d, dtype=torch.float64)
    assert torch.equal(gauss(x, sources=x[:1])[0], gauss(x[:1], sources=x[:1])[0])
    with pytest.raises(ShapeError, match="batch of 2, as X, or of 1"):
        gauss(x, sources=torch.cat([x, x]))


def test_others_have_no_sources():
    c = sumformer.construct("mean_others(x*y)", 1e-3, d=1)
    X = torch.rand(1, 4, 1, dtype=torch.float64)
    with pytest.raises(InputError, match="own token"):
        c(X, sources=X)
    with pytest.raises(InputError, match="certified for"):
        c(X[:, :1])


def test_padding_changes_nothing(gauss):
    X = torch.rand(1, 6, 2, dtype=torch.float64)
    padded = torch.cat([X, torch.full((1, 3, 2), float("nan"), dtype=torch.float64)], dim=1)
    mask = torch.tensor([[1] * 6 + [0] * 3])
    out = gauss(padded, attention_mask=mask)
    assert torch.allclose(out[:, :6], gauss(X), rtol=0, atol=1e-14)
    assert torch.equal(out[:, 6:], torch.zeros(1, 3, 2, dtype=torch.float64))


def test_the_network_is_a_mergeable_summary(gauss):
    X = torch.rand(1, 100, 2, dtype=torch.float64)
    net = gauss.network
    state = net.summarise(X[:, :30]) + net.summarise(X[:, 30:])
    assert torch.allclose(net.apply(X, state), net(X), rtol=1e-13, atol=1e-14)
    window = state - net.summarise(X[:, :30])
    assert torch.allclose(net.apply(X, window), net.apply(X, net.summarise(X[:, 30:])), rtol=1e-11, atol=1e-12)


def test_more_precise_tokens_than_certified_are_refused():
    c = sumformer.construct(GAUSS, 1e-2, d=1, dtype="float32")
    with pytest.raises(InputError, match="float32"):
        c(torch.rand(1, 3, 1, dtype=torch.float64))
    assert c(torch.rand(1, 3, 1)).dtype == torch.float32


def test_mixed_arithmetic_certifies_what_float32_cannot():
    sharp = GAUSS.replace("-norm2", "-4*norm2")
    with pytest.raises(RefusedError) as refusal:
        sumformer.construct(sharp, 1e-3, d=2, dtype="float32")
    assert refusal.value.reachable is not None
    assert refusal.value.reachable > 1e-3
    assert "mixed" in str(refusal.value)
    c = sumformer.construct(sharp, 1e-3, d=2, dtype="mixed")
    assert c.certificate.total <= 1e-3
    assert c(torch.rand(1, 50, 2)).dtype == torch.float32


@pytest.mark.parametrize(
    ("source", "kwargs", "error"),
    [
        ("mean(sqrt(abs(x-y)))", {}, RefusedError),
        ("mean(abs(x-y))", {"route": "sums"}, DomainError),
        ("mean(1/(x-y+1))", {}, RefusedError),
        ("mean(1/(x-y+1))", {"route": "sums"}, DomainError),
        ("mean(y)/mean(x*y)", {}, RefusedError),
        ("mean(y)/mean(x*y)", {"route": "sums"}, DomainError),
        ("log(mean(y))", {}, RefusedError),
        ("log(mean(y))", {"route": "sums"}, DomainError),
        ("sqrt(mean(y-0.5))", {}, RefusedError),
        ("sqrt(mean(y-0.5))", {"route": "sums"}, DomainError),
        ("max(y)", {"route": "sums"}, RefusedError),
        ("sum(y)", {}, TargetError),
        ("mean(x)", {}, TargetError),
        ("mean(y", {}, TargetError),
        ("mean(y)", {"route": "grid"}, RefusedError),  # any number of tokens
        ("mean(y)", {"route": "magic"}, InputError),
        ("mean(y)", {"dtype": "float16"}, InputError),
        ("mean(y)", {"epsilon": 0.0}, InputError),
        ("mean(y)", {"epsilon": float("nan")}, InputError),
        ("mean(exp(x*y))", {"route": "exact"}, RefusedError),
        ("mean(exp(x*y))", {"epsilon": 1e-17}, RefusedError),
        ("sum(y)**3", {"n": "..1000", "epsilon": 1e-9}, RefusedError),
    ],
)
def test_refusals_are_typed(source, kwargs, error):
    with pytest.raises(error):
        sumformer.construct(source, **{"epsilon": 1e-3, "d": 1, **kwargs})


def test_a_target_brings_its_own_domain(gauss):
    with pytest.raises(InputError, match=r"own domain; give d to target"):
        sumformer.construct(gauss.target, 1e-3, d=2)


@pytest.mark.parametrize("architecture", ["transformer", "linformer", "performer", "deep-transformer"])
def test_an_option_that_is_not_known_is_named_with_those_that_are(architecture):
    with pytest.raises(InputError, match=r"takes the options .*p.*; it does not know colour, size"):
        sumformer.construct("mean(y)", 0.5, n=3, architecture=architecture, options={"size": 1, "colour": 2})


def test_networks_differentiate_and_compile(gauss):
    X = torch.rand(1, 20, 2, dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad(gauss.network(X).sum(), X)
    (wanted,) = torch.autograd.grad(gauss.target(X).sum(), X)
    assert float((got - wanted).abs().max()) < 1e-2
    compiled = torch.compile(gauss.network, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.no_grad():
        for n in (5, 40, 1500):
            Z = torch.rand(2, n, 2, dtype=torch.float64)
            assert torch.allclose(compiled(Z), gauss.network(Z), rtol=0, atol=1e-13)


def test_memory_stays_below_a_latent_buffer():
    """n·d' numbers are never held: the largest tensor made is far smaller."""
    from torch.utils._python_dispatch import TorchDispatchMode

    c = sumformer.construct(GAUSS.replace("-norm2", "-4*norm2"), 1e-3, d=2)
    n, largest = 200_000, 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                largest = max(largest, out.numel())
            return out

    X = torch.rand(1, n, 2, dtype=torch.float64)
    with torch.no_grad(), Watch():
        c.network(X)
    assert largest < n * c.certificate.latent_dimension / 4


def test_saving_leaves_no_report_of_another_construction_and_no_trained_network_is_replaced(tmp_path):
    first = sumformer.construct("mean(y)", 0.1)
    first.save(tmp_path / "a")
    (tmp_path / "a" / "report.html").write_text("of mean(y)")
    sumformer.construct("x - mean(y)", 0.1).save(tmp_path / "a")
    assert not (tmp_path / "a" / "report.html").exists()
    assert sumformer.load(tmp_path / "a").target.source == "x - mean(y)"
    first.network.save_pretrained(tmp_path / "trained")
    before = (tmp_path / "trained" / "config.json").read_text()
    with pytest.raises(InputError, match="another folder"):
        sumformer.construct("x - mean(y)", 0.1).save(tmp_path / "trained")
    assert (tmp_path / "trained" / "config.json").read_text() == before


@pytest.mark.parametrize("epsilon", [1e-12, 5e-12])
def test_what_route_sums_says_is_reachable_is(epsilon):
    with pytest.raises(RefusedError) as refusal:
        sumformer.construct(GAUSS, epsilon, d=1)
    reachable = refusal.value.reachable
    assert reachable is not None
    assert sumformer.construct(GAUSS, reachable, d=1).certificate.total <= reachable


@pytest.mark.parametrize("given", ["weights", "attention_mask", None])
def test_an_empty_batch_stays_empty(given):
    c = sumformer.construct("x - mean(y)", 1e-6, d=1)
    X = torch.rand(0, 4, 1, dtype=torch.float64)
    assert c(X, **({} if given is None else {given: torch.ones(0, 4, dtype=torch.long)})).shape == X.shape


def test_what_is_constructed_is_printed_in_a_line():
    made = sumformer.construct("x*mean(y)", 1e-3)
    gadget = elementary("exp", Reading({"t": 1.0}, lo=-1.0, hi=2.0), "out", 1e-8, prefer="parameters")
    assert repr(made).startswith("Construction(x*mean(y) as a sumformer by route exact: sup error ≤ ")
    assert repr(made.certificate).startswith("Certificate(x*mean(y), d = 1, any tokens, box 0:1: sup error ≤ ")
    assert repr(gadget).startswith("Gadget(polynomial: 47 layers, width 7, error ≤ ")
    assert all(len(repr(thing)) < 120 for thing in (made, made.certificate, gadget))


def test_queries_and_summaries_of_another_network_are_refused(gauss):
    net, other = gauss.network, sumformer.construct("mean(sigmoid(x-y))", 1e-2, d=1).network
    x, z = torch.rand(3, 4, 2).double(), torch.rand(3, 4, 1).double()
    with pytest.raises(ShapeError, match=r"\(batch, n, 2\)"):
        net.apply(torch.rand(3, 4, 3).double(), net.summarise(x))
    with pytest.raises(ShapeError, match="latent dimension"):
        net.apply(x, other.summarise(z))
    with pytest.raises(ShapeError, match="of 3 sequences, or of one"):
        net.apply(x, net.summarise(x[:2]))
    with pytest.raises(DtypeError, match="a Summary"):
        net.apply(x, torch.rand(3))
    assert torch.allclose(net.apply(x, net.summarise(x[:1]))[:1], net(x[:1]))


def test_more_coordinates_than_a_certificate_speaks_of_are_refused_before_the_work():
    assert sumformer.construct("x - mean(y)", 1e-6, d=28).certificate.d == 28
    with pytest.raises(RefusedError, match="at most 28 coordinates; this target has 29"):
        sumformer.construct("x - mean(y)", 1e-6, d=29)
    with pytest.raises(RefusedError, match="the place included; this target has 29"):
        sumformer.construct("x + i", 1e-6, d=28, n=3, positions=True)
