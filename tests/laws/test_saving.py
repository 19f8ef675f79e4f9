"""save_pretrained / from_pretrained: what comes back computes the same bits; what is not a saved model is refused."""

from __future__ import annotations

import ast
import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import sumformer
from sumformer.errors import FileFormatError, NotSupportedError
from sumformer.nn import MLP, Concatenated, PretrainedModule, Sumformer, SumMixer

from .modules import over_cases, tokens

SOURCE = Path(sumformer.__file__).parent
CONFIG, WEIGHTS = "config.json", "model.safetensors"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@over_cases()
def test_round_trip(case, dtype, tmp_path):
    module = case.make(dtype).eval()
    module.save_pretrained(tmp_path / "deep" / "folder")
    again = type(module).from_pretrained(tmp_path / "deep" / "folder")
    assert sorted(path.name for path in (tmp_path / "deep" / "folder").iterdir()) == [CONFIG, WEIGHTS]
    assert type(again) is type(module)
    assert not again.training
    assert again.config() == module.config()
    keep = torch.ones(2, 7, dtype=torch.bool)
    keep[0, 2:4] = False
    x = tokens(7, dtype)
    assert torch.equal(again(x), module(x))
    assert torch.equal(again(x, **case.mask(keep)), module(x, **case.mask(keep)))
    assert [p.requires_grad for p in again.parameters()] == [p.requires_grad for p in module.parameters()]


@over_cases()
def test_the_base_class_reads_any_of_them(case, tmp_path):
    case.make().save_pretrained(str(tmp_path))
    assert repr(PretrainedModule.from_pretrained(str(tmp_path))) == repr(case.make())


@over_cases()
def test_built_without_memory(case):
    """On the meta device first, then given tensors, or memory and values."""
    module, x = case.make().eval(), tokens(7)
    with torch.device("meta"):
        assigned, filled = case.build().eval(), case.build().eval()
    assigned.load_state_dict(module.state_dict(), assign=True)
    filled.double().to_empty(device="cpu").load_state_dict(module.state_dict())
    assert torch.equal(assigned(x), module(x))
    assert torch.equal(filled(x), module(x))


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    SumMixer(4).save_pretrained(tmp_path)
    return tmp_path


def rewrite(path, **changes):
    data = json.loads(path.read_text())
    data.update(changes)
    path.write_text(json.dumps(data))


def refused(folder, *words):
    with pytest.raises(FileFormatError) as caught:
        SumMixer.from_pretrained(folder)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("size", [0, 4, 8, 60, -1])
def test_truncated_weights(saved, size):
    path = saved / WEIGHTS
    path.write_bytes(path.read_bytes()[:size])
    refused(saved, WEIGHTS, "truncated or not a safetensors file")


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)) * 8,
        b"\xff" * 64,
        b"[1, 2, 3]",
        pickle.dumps({"phi.weight": [1.0]}),
        b"\x02\x00\x00\x00\x00\x00\x00\x00{}extra",
    ],
    ids=["bytes", "huge header", "json", "pickle", "trailing"],
)
def test_foreign_weights(saved, content):
    (saved / WEIGHTS).write_bytes(content)
    refused(saved, WEIGHTS)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
def test_a_pickle_is_never_opened(saved, name):
    (saved / name).write_bytes(pickle.dumps(Bomb()))
    refused(saved, name)


def test_a_torch_checkpoint_is_never_opened(saved):
    torch.save({"phi.weight": Bomb()}, saved / WEIGHTS)
    refused(saved, WEIGHTS, "not a safetensors file")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "not readable JSON"),
        (b"{", "not readable JSON"),
        (b"\xff\xfe\x00", "not readable JSON"),
        (b"[1, 2, 3]", "expected a JSON object, got list"),
        (b'"SumMixer"', "expected a JSON object, got str"),
        (b"[" * 100_000, "not readable JSON"),
        (b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", ""),
        (b"{}", "not a SumMixer"),
        (b'{"type": "SumMixer"}', "d_model"),
        (b'{"type": "SumMixer", "d_model": 4, "surprise": 1}', "surprise"),
        (b'{"type": "SumMixer", "d_model": "four"}', "does not describe a SumMixer"),
        (b'{"type": "SumMixer", "d_model": -4}', "does not describe a SumMixer"),
        (b'{"type": "SumMixer", "d_model": 4, "activation": "pow"}', "expected one of relu"),
        (b'{"type": "os.system", "command": "true"}', "unknown module type 'os.system'"),
        (b'{"type": ["SumMixer"]}', "unknown module type"),
        (b'{"type": "torch.Sequential", "modules": 3}', "expected a list of modules"),
        (b'{"type": "torch.Sequential", "modules": [3]}', "expected a list of modules"),
        (b'{"type": "MLP", "d_in": 2, "d_out": 1}', "holds a MLP, not a SumMixer"),
    ],
)
def test_foreign_configuration(saved, content, word):
    (saved / CONFIG).write_bytes(content)
    refused(saved, CONFIG, word)


def test_missing_files(saved, tmp_path):
    refused(tmp_path / "nowhere", CONFIG, "no such file", "save_pretrained")
    (saved / WEIGHTS).unlink()
    refused(saved, WEIGHTS, "no such file", "save_pretrained")


def test_every_misfit_is_named_at_once(saved):
    tensors = load_file(saved / WEIGHTS)
    tensors["phi.weight"] = torch.zeros(4, 5)
    tensors["stranger"] = tensors.pop("out.bias")
    tensors["out.weight"] = torch.zeros(4, 4, dtype=torch.int64)
    save_file(tensors, saved / WEIGHTS)
    refused(
        saved,
        "phi.weight: expected shape (4, 4), got (4, 5)",
        "unknown key stranger",
        "missing out.bias",
        "out.weight: expected a dtype like torch.float32, got torch.int64",
    )


def test_configuration_and_weights_must_belong_together(saved):
    rewrite(saved / CONFIG, d_latent=9)
    refused(saved, "phi.weight: expected shape (9, 4), got (4, 4)")


def test_what_cannot_be_described_is_not_written(tmp_path):
    net = Sumformer(torch.nn.Bilinear(2, 2, 2), Concatenated(MLP(4, 2)))
    with pytest.raises(NotSupportedError, match="Bilinear"):
        net.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_in_the_source_can_unpickle():
    forbidden_modules = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    forbidden_calls = {"torch.load", "torch.save", "torch.jit.load"}
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [(path.name, name) for name in names if name.split(".")[0] in forbidden_modules]
            if isinstance(node, ast.Attribute) and ast.unparse(node) in forbidden_calls:
                found.append((path.name, ast.unparse(node)))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load"):
                safe = any(k.arg == "allow_pickle" and ast.unparse(k.value) == "False" for k in node.keywords)
                found += [] if safe else [(path.name, ast.unparse(node))]
    assert found == []
