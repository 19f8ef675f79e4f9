"""How large a construction is, counted from its module: layers, width, parameters, the largest weight."""

from __future__ import annotations

from typing import Any

from sumformer.errors import CertificateError
from sumformer.nn.compiled_transformer import CompiledTransformer
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.nn.look_up_transformer import LookUpTransformer
from sumformer.nn.positioned import Positioned
from sumformer.theorems.alberti_2023.faithfulness import faithfulness
from sumformer.theorems.constructed import Construction

_COUNTED = ("attention_layers", "feed_forward_layers", "width", "nonzero", "dense", "largest_weight")


def compiled_size(made: Construction) -> dict[str, Any] | None:
    """Of a network of blocks, its ideal Sumformer not counted; None of others, whose parameters say it all."""
    return counted_sizes(made) if isinstance(_inner(made), CompiledTransformer | LookUpTransformer) else None


def parameters(made: Construction) -> int:
    """Those that are not 0 of a network of blocks, which stores no others; all of any other network."""
    size = compiled_size(made)
    return sum(p.numel() for p in made.network.parameters()) if size is None else int(size["nonzero"])


def size_in_words(made: Construction) -> str:
    size = compiled_size(made)
    if size is None:
        return f"{parameters(made)} parameters"
    blocks = f"{size['feed_forward_layers']} block{'s' * (size['feed_forward_layers'] != 1)} of width {size['width']}"
    weights = f"{size['nonzero']} weights ≠ 0 ({size['dense']} stored densely)"
    return f"{blocks}, {weights}, the largest {size['largest_weight']:.3g}"


def attention_layers(made: Construction) -> int | None:
    """How many are not 0; None where that is not counted."""
    network = _inner(made)
    if isinstance(network, CompiledTransformer | LookUpTransformer):
        return faithfulness(network).attention_layers
    if isinstance(network, DeepTransformer):
        return network.attention_layers
    return 0 if made.certificate.architecture == "sumformer" else None


def counted_sizes(made: Construction) -> dict[str, Any]:
    """By name; a compiled network must be what its theorem speaks of."""
    network = _inner(made)
    if isinstance(network, CompiledTransformer | LookUpTransformer):
        counted = faithfulness(network)
        if not counted.faithful:
            raise CertificateError(f"the network is not what the theorem speaks of: {'; '.join(counted.faults)}")
        return {name: getattr(counted, name) for name in _COUNTED}
    tensors = list(network.parameters())
    return {
        "attention_layers": attention_layers(made) or 0,
        "feed_forward_layers": network.feed_forward_layers if isinstance(network, DeepTransformer) else None,
        "width": made.certificate.latent_dimension,
        "nonzero": sum(int(p.count_nonzero()) for p in tensors),
        "dense": sum(p.numel() for p in tensors),
        "largest_weight": max((float(p.abs().max()) for p in tensors if p.numel()), default=None),
    }


def _inner(made: Construction) -> Any:
    """Places are given to a network from outside; what computes with them is counted."""
    return made.network.network if isinstance(made.network, Positioned) else made.network
