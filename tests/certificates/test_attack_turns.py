"""Networks whose sequences cost much, as meshes do: every kind of input is tried or named, and f is compared at many
tokens of each sequence.
"""

import copy
import time

import pytest
import torch

from sumformer.certificates.attack import DEAR, attack, violation
from sumformer.certificates.attack_inputs import KINDS, Multisets, heaviest
from sumformer.certificates.comparison import Comparison
from sumformer.cli.output import not_reached
from sumformer.theorems.construction import construct

ALL = {*KINDS, "ascent"}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def mesh():
    return construct("sum(exp(-5*norm(x-y))*y)/sum(exp(-5*norm(x-y)))", 1e-1, d=2)


def spoilt(network):
    """All weights multiplied by random numbers."""
    network = copy.deepcopy(network)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(torch.rand(parameter.shape, generator=generator, dtype=parameter.dtype))
    return network


class Slow:
    """A network that takes its time for every sequence, and says that its Σ is large."""

    def __init__(self, network, seconds):
        self.network, self.seconds, self.sequences = network, seconds, 0
        self.inside, self.outside, self.latent_dimension = network.inside, network.outside, 2 * DEAR

    def summarise(self, z, weights=None):
        self.sequences += len(z)
        time.sleep(self.seconds * len(z))
        return self.network.summarise(z, weights)

    def apply(self, x, state):
        return self.network.apply(x, state)

    def parameters(self):
        return self.network.parameters()


def kinds_of(result):
    named = {kind for kind in ALL if kind in result.not_reached}
    assert not named & set(result.by_kind)
    return named | set(result.by_kind)


def test_a_spoilt_mesh_is_refuted(mesh):
    result = attack(mesh.target, spoilt(mesh.network))
    assert violation(result, mesh.certificate.total)[0]
    assert kinds_of(result) == ALL
    assert set(KINDS) <= set(result.by_kind)  # 7 sequences of some milliseconds each, in 5 seconds


def test_a_sound_mesh_is_attacked_with_more_than_one_token(mesh):
    assert mesh.certificate.route == "mesh"
    result = attack(mesh.target, mesh.network)
    assert 1e-3 <= result.worst <= mesh.certificate.total
    assert result.witness.n > 1
    mesh.target.box.check(result.witness.tokens[None])
    assert kinds_of(result) == ALL


def test_a_slow_network_is_refuted_and_what_was_not_tried_is_named():
    c = construct("mean(tanh(x*y))", 1e-3)
    slow = Slow(spoilt(c.network), 0.1)
    result = attack(c.target, slow, seconds=1.0)
    assert violation(result, c.certificate.total)[0]
    assert slow.sequences <= 12
    assert result.trials > 10 * slow.sequences  # many tokens of a sequence
    assert result.cut_short
    assert result.not_reached
    assert kinds_of(result) == ALL
    assert "ascent" in result.not_reached
    assert all(name in not_reached(result) for name in result.not_reached)


def test_with_time_enough_nothing_is_left_out():
    c = construct("mean(tanh(x*y))", 1e-3)
    slow = Slow(c.network, 0.0)
    first, second = (attack(c.target, slow, seconds=600.0, effort="quick", seed=5) for _ in range(2))
    assert not first.cut_short
    assert first.not_reached == ()
    assert set(first.by_kind) == ALL
    assert first.by_kind == second.by_kind
    assert first.worst == second.worst <= c.certificate.total
    assert torch.equal(first.witness.tokens, second.witness.tokens)


def test_lists_share_the_time_too():
    c = construct("mean(tanh(x*y)) + i/50", 1e-2, n=50, positions=True)
    forward = c.network.forward

    def slow(X, *rest, **options):
        time.sleep(0.05 * len(X))
        return forward(X, *rest, **options)

    c.network.forward = slow
    result = attack(c.target, c.network, seconds=1.0)
    assert set(result.by_kind) == {"random", "faces", "corners", "two points"}
    assert result.not_reached[-1] == "ascent"
    assert result.cut_short
    assert result.seconds < 5


# ---- many tokens of one multiset


@pytest.mark.parametrize("source", ["mean(tanh(x*y))", "x*mean_others(sin(x - y)*y)"])
def test_errors_at_many_tokens_are_those_at_one_after_another(source):
    c = construct(source, 1e-2, n="2..1000")
    generator = torch.Generator().manual_seed(1)
    points = torch.rand(2, 5, 1, generator=generator, dtype=torch.float64)
    batch = Multisets(
        "test", points, torch.randn(2, 5, generator=generator).double(), torch.tensor([20.0, 30.0]).double()
    )
    compared = Comparison(c.target, spoilt(c.network))
    with torch.no_grad():
        together = compared.errors(batch.points, batch.weights(), 4)
        for i in range(4):
            own = batch.own(torch.full((2,), i))
            assert torch.equal(own.points[:, 0], points[:, i])
            assert torch.equal(own.weights().sort(1).values, batch.weights().sort(1).values)
            alone = compared.errors(own.points, own.weights())[:, 0]
            torch.testing.assert_close(together[:, i], alone, rtol=1e-9, atol=1e-12)


def test_the_own_token_of_a_hundred_thousand_is_put_in_front():
    m = 10**5
    batch = Multisets("test", torch.arange(m).double()[None, :, None], torch.zeros(1, m).double(), torch.tensor([m]))
    points = batch.own(torch.tensor([m - 1])).points[0, :, 0]
    assert points[[0, 1, m - 1]].tolist() == [m - 1, 1, 0]


def test_what_weighs_most_stands_for_all():
    points = torch.arange(6.0).double().reshape(1, 6, 1)
    weights = torch.tensor([[1.0, 1, 500, 1, 300, 1]]).double()
    n = weights.sum(1)
    few = heaviest(Multisets("test", points, (weights - 1).clamp_min(1e-30).log(), n), 3)
    assert few.points[0, :, 0].tolist() == [0.0, 2.0, 4.0]
    assert few.n.tolist() == n.tolist()
    assert few.weights()[0].tolist() == pytest.approx([1, 502, 301], abs=1)
