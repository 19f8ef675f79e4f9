"""What is not compiled: refused before the work, looked up where continuity is enough, and in words that help."""

from __future__ import annotations

import time

import pytest
import torch

from sumformer.certificates.checker import check
from sumformer.errors import RefusedError
from sumformer.nn import CompiledTransformer, LookUpTransformer
from sumformer.nn.pretrained import PretrainedModule
from sumformer.targets import target
from sumformer.theorems.alberti_2023.arithmetic import ARITHMETICS
from sumformer.theorems.alberti_2023.compile.sums import gathered
from sumformer.theorems.alberti_2023.sums_route import sums_route
from sumformer.theorems.construction import construct, load

WIDE = "sum(exp(-norm2(x - y))*y)/sum(exp(-norm2(x - y)))"
ARCHITECTURES = ("transformer", "linformer", "performer")


def test_a_network_that_is_too_large_is_refused_before_it_is_made():
    start = time.process_time()
    with pytest.raises(RefusedError, match=r"about 4.2e\+06 weights that read the sums") as refusal:
        construct(WIDE, 1e-2, n=5, d=5, architecture="transformer")
    assert time.process_time() - start < 30
    assert any("d' = 1369" in reason for reason in refusal.value.reasons)


@pytest.mark.parametrize("d", [1, 2])
def test_the_size_is_known_beforehand(d):
    """Against the sums that read means in the network itself."""
    f = target(WIDE, n=5, d=d)
    made = construct(f, 1e-2, architecture="transformer")
    ledger = made.network.ledger
    means = set(ledger["attention"]["means"])
    read = sum(name in means for v in ledger["values"] if v["op"] == "sum" for name in v["of"]["of"])
    expected = gathered(sums_route(f, 0.45e-2, ARITHMETICS["float64"]).plan)
    assert 0.7 * read <= expected <= read


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_only_continuous_is_looked_up(tmp_path, architecture):
    made = construct("max(y)", 0.1, n=3, architecture=architecture)
    assert isinstance(made.network, LookUpTransformer)
    assert (made.certificate.route, made.certificate.architecture) == ("grid", architecture)
    assert [line.split(":")[0] for line in made.passed_over] == ["sums", "symmetric"]
    made.save(tmp_path)
    assert check(tmp_path).verified


def test_a_table_that_does_not_reach_names_an_error_that_it_reaches():
    with pytest.raises(RefusedError) as refusal:
        construct("max(y)", 0.01, n=3, architecture="transformer")
    assert any(reason.startswith("grid: a look-up table cannot reach") for reason in refusal.value.reasons)
    reachable = refusal.value.reachable
    assert construct("max(y)", reachable, n=3, architecture="transformer").certificate.total <= reachable
    with pytest.raises(RefusedError, match="without a route a look-up is tried"):
        construct("max(y)", 0.1, n=3, architecture="transformer", route="sums")


def test_the_norm_of_ramps_says_how_it_counts():
    options = {"activation": "relu"}
    made = construct("max(y)", 0.2, n=3, architecture="transformer", route="grid", options=options)
    c = made.certificate
    assert "(volume 1 · n 3 · width 1) = 3" in c.why
    cells = next(t.bound for t in c.terms if t.name.startswith("modulus"))
    assert cells == pytest.approx(3 * c.constants["sup_off_ramps"], rel=1e-6)


def test_the_ideal_sumformer_is_no_parameter(tmp_path):
    """It is saved by the same names as ever, and no gradient is waited for."""
    made = construct(WIDE, 1e-1, n=3, architecture="transformer")
    made.save(tmp_path)
    for network in (made.network, load(tmp_path).network, PretrainedModule.from_pretrained(tmp_path)):
        assert isinstance(network, CompiledTransformer)
        names = {name for name, _ in network.named_parameters()}
        assert not any(name.startswith("ideal.") for name in names)
        assert any(name.startswith("ideal.") for name in network.state_dict())
        network.requires_grad_(True)
        X = torch.rand(2, 3, 1, dtype=torch.float64)
        network(X).sum().backward()
        assert all(p.grad is not None for p in network.parameters())
        assert (network.ideal(X) - made.target(X)).abs().max() <= 0.1


def test_a_domain_that_is_left_is_named_in_the_words_of_the_target():
    with pytest.raises(RefusedError) as refusal:
        construct("x*log(mean(y) + 1e-10)", 0.1, n=5, architecture="transformer")
    assert any("log(mean(y) + 1e-10) may leave its domain: mean(y), with" in reason for reason in refusal.value.reasons)
