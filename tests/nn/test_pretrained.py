"""What a module says of itself in config.json; the round trip of every module is a law (tests/laws/test_saving.py)."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune
from torch.nn.utils.parametrizations import weight_norm

from sumformer.errors import FileFormatError, MissingDependencyError, NotSupportedError
from sumformer.nn import MLP, Concatenated, DeepSets, PretrainedModule, Sumformer, SumMixer, mlp_sumformer
from sumformer.nn import pretrained as file_format


def test_the_configuration_is_the_constructors_arguments():
    assert MLP(4, 2, hidden=6, depth=1).config() == {
        "type": "MLP",
        "d_in": 4,
        "d_out": 2,
        "hidden": 6,
        "depth": 1,
        "activation": "relu",
    }
    assert SumMixer(4).config()["d_latent"] == 4
    nested = mlp_sumformer(4, 8, 3, mean=True).config()
    assert (nested["type"], nested["mean"]) == ("Sumformer", True)
    assert (nested["phi"]["type"], nested["psi"]["type"]) == ("MLP", "PairMLP")


def torch_parts():
    return nn.Sequential(
        nn.Linear(4, 6, bias=False), nn.GELU("tanh"), nn.LayerNorm(6, eps=1e-3), nn.Dropout(0.25), nn.Linear(6, 3),
        nn.Tanh(), nn.SiLU(), nn.Sigmoid(), nn.ReLU(), nn.Identity(),
    )  # fmt: skip


def test_modules_of_torch_keep_their_arguments(tmp_path):
    torch.manual_seed(0)
    net = DeepSets(torch_parts(), nn.Sequential()).eval()
    net.save_pretrained(tmp_path)
    again = DeepSets.from_pretrained(tmp_path)
    assert repr(again) == repr(net)
    x = torch.randn(2, 5, 4)
    assert torch.equal(again(x), net(x))


def test_layer_norm_keeps_all_its_arguments(tmp_path):
    net = DeepSets(nn.LayerNorm(4, elementwise_affine=True, bias=False), nn.LayerNorm(4, elementwise_affine=False))
    net.save_pretrained(tmp_path)
    assert repr(DeepSets.from_pretrained(tmp_path)) == repr(net)


def test_both_files_may_be_read_by_the_same_people(tmp_path):
    MLP(4, 2).save_pretrained(tmp_path)
    config, weights = (tmp_path / name for name in ("config.json", "model.safetensors"))
    assert weights.stat().st_mode == config.stat().st_mode


def test_saving_over_what_was_loaded(tmp_path):
    torch.manual_seed(0)
    SumMixer(4).save_pretrained(tmp_path)
    net = SumMixer.from_pretrained(tmp_path)
    wanted = {key: tensor.clone() for key, tensor in net.state_dict().items()}
    SumMixer(4).save_pretrained(tmp_path)
    assert all(torch.equal(tensor, wanted[key]) for key, tensor in net.state_dict().items())
    net.save_pretrained(tmp_path)
    again = SumMixer.from_pretrained(tmp_path)
    assert all(torch.equal(tensor, wanted[key]) for key, tensor in again.state_dict().items())


def test_training_goes_on_after_loading(tmp_path):
    SumMixer(4).save_pretrained(tmp_path)
    net = SumMixer.from_pretrained(tmp_path).train()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    before = net.out.weight.clone()
    net(torch.randn(2, 3, 4)).sum().backward()
    optimiser.step()
    assert not torch.equal(net.out.weight, before)


class Mine(PretrainedModule):
    """A user's own part: arguments stored under their names, and it can be saved inside ours."""

    def __init__(self, gain: float, sizes: list[int], names: dict[str, str]) -> None:
        super().__init__()
        self.gain, self.sizes, self.names = gain, sizes, names

    def forward(self, x):
        return self.gain * x


def test_a_users_module_is_saved_with_lists_and_mappings(tmp_path):
    net = Sumformer(Mine(2.5, [1, 2], {"a": "b"}), Concatenated(nn.Identity()))
    net.save_pretrained(tmp_path)
    again = Sumformer.from_pretrained(tmp_path)
    assert (again.phi.gain, again.phi.sizes, again.phi.names) == (2.5, [1, 2], {"a": "b"})
    assert json.loads((tmp_path / "config.json").read_text())["phi"]["type"].endswith(".Mine")


def test_what_cannot_be_saved_is_named():
    with pytest.raises(NotSupportedError, match="cannot save a Conv1d"):
        Sumformer(nn.Conv1d(1, 1, 1), Concatenated(nn.Identity())).config()
    with pytest.raises(NotSupportedError, match="cannot write a Tensor"):
        Mine(torch.ones(2), [], {}).config()


def test_one_tensor_under_two_names_is_saved_twice(tmp_path):
    shared = MLP(4, 4, 4, 1)
    net = Sumformer(shared, Concatenated(MLP(8, 2, 4, 1)))
    net.phi.layers[2].weight = net.phi.layers[0].weight
    net.save_pretrained(tmp_path)
    x = torch.randn(2, 3, 4)
    assert torch.equal(Sumformer.from_pretrained(tmp_path)(x), net(x))


def test_without_safetensors_the_package_to_install_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "safetensors.torch", None)
    with pytest.raises(MissingDependencyError, match="needs safetensors; install it with: pip install 'sumformer"):
        SumMixer(4).save_pretrained(tmp_path)


def test_read_config_and_read_tensors_are_the_only_doors(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        file_format.read_config(tmp_path / "config.json")
    with pytest.raises(FileFormatError, match="no such file"):
        file_format.read_tensors(tmp_path / "model.safetensors")
    (tmp_path / "config.json").mkdir()
    with pytest.raises(FileFormatError, match="not readable JSON"):
        file_format.read_config(tmp_path / "config.json")


def pruned_for_good(net):
    prune.l1_unstructured(net.phi, "weight", 0.5)
    prune.remove(net.phi, "weight")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda net: weight_norm(net.phi), "phi: expected Linear(), got ParametrizedLinear()"),
        (lambda net: prune.l1_unstructured(net.phi, "weight", 0.5), "missing phi.weight; unknown key phi.weight_mask"),
        (lambda net: setattr(net, "sigma", nn.ReLU()), "sigma: expected GELU(approximate='none'), got ReLU()"),
        (lambda net: setattr(net, "sigma", nn.GELU("tanh")), "got GELU(approximate='tanh')"),
        (lambda net: setattr(net, "phi", nn.Linear(4, 5)), "phi.weight: expected shape (4, 4), got (5, 4)"),
        (lambda net: setattr(net, "more", nn.Tanh()), "more: expected nothing, got Tanh()"),
        (lambda net: setattr(net, "activation", "relu"), "sigma: expected ReLU(), got GELU(approximate='none')"),
        (lambda net: setattr(net, "d_latent", 0), "d_latent = 0"),
    ],
)
def test_what_would_be_read_back_otherwise_is_refused(change, words, tmp_path):
    net = SumMixer(4)
    change(net)
    with pytest.raises(NotSupportedError) as caught:
        net.save_pretrained(tmp_path / "new")
    assert words in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_refusal_says_what_to_do(tmp_path):
    net = SumMixer(4)
    weight_norm(net.phi)
    with pytest.raises(NotSupportedError, match=r"remove_parametrizations, prune.remove.*or save the state_dict"):
        net.save_pretrained(tmp_path)
    parametrize.remove_parametrizations(net.phi, "weight")
    pruned_for_good(net)
    net.save_pretrained(tmp_path)
    x = torch.randn(2, 3, 4)
    assert torch.equal(SumMixer.from_pretrained(tmp_path)(x), net.eval()(x))


def test_saving_draws_no_random_numbers(tmp_path):
    net, before = SumMixer(4), torch.get_rng_state()
    net.save_pretrained(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_part_in_two_places_and_a_list_of_parts_are_saved(tmp_path):
    phi = MLP(4, 4, 4, 1)
    net = Stacked(nn.ModuleList([phi, phi]))
    net.save_pretrained(tmp_path)
    x = torch.randn(2, 3, 4)
    assert torch.equal(Stacked.from_pretrained(tmp_path)(x), net(x))


class Stacked(PretrainedModule):
    """A user's own, with a list of parts."""

    def __init__(self, parts: nn.ModuleList) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x
