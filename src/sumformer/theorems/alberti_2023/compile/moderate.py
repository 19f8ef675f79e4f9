"""Numbers of a compiled network are 0, or moderate: so that no square, and no product of three, leaves float64."""

from __future__ import annotations

import numpy as np

from sumformer.errors import RefusedError
from sumformer.nn.compiled_transformer import CompiledTransformer

LEAST, MOST = 2e-90, 5e89  # with room for a checker whose enclosures are a little wider


def require_moderate(network: CompiledTransformer) -> None:
    """Refuse values, the weights they are read with, and weights of the network that the proof does not follow."""
    sizes: list[float] = []
    for value in network.ledger["values"]:
        reach = max(map(abs, value["range"]))
        sizes.append(reach if reach > value["error"] else 0.0)  # what is 0 is enclosed with a width
        of = value.get("of", [])
        for f in of if isinstance(of, list) else [of] if isinstance(of, dict) else []:
            sizes += [*f["weights"], f["offset"]]
    own = [t.numpy().ravel() for name, t in network.state_dict().items() if not name.startswith("ideal.")]
    size = np.abs(np.concatenate([np.array(sizes), *(t for t in own if t.dtype.kind == "f")]))
    far = size[((size < LEAST) & (size > 0)) | ~(size <= MOST)]
    if len(far):
        raise RefusedError(
            f"the compiled network would have numbers of the size {far[0]:.2g}",
            [f"those from {LEAST:g} to {MOST:g} are certified: write the target and its box in other units"],
        )
