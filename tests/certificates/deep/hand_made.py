"""A deep Transformer of two cells and 16 tokens, written weight by weight, with a certificate for (x − mean(y))/1000.

It is 0, the target's value within 0.001, but where all tokens lie in the upper cell, 2⁻¹⁶ of the inputs: there a
forgery decides what it writes.
"""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tampered import sign

from sumformer.certificates.certificate import NOT_CLAIMED, OF_A_DEEP_NETWORK

Floats = NDArray[np.float64]
TOKENS, WIDTH = 16, 8
CELL, LEAST, OUT = 0, 1, 5
"""Coordinates: of the own cell, of the least cell of all tokens, and of the output."""


class HandMade:
    def __init__(self, largest: float, ramp: float) -> None:
        self.largest, self.ramp = largest, ramp
        self.tensors: dict[str, Floats] = {}
        self.modules: list[dict[str, Any]] = []
        w1, b1, w2 = self.empty(2, 3)
        w1[:, :, CELL] = 1
        for layer, cell in enumerate((1, 0)):
            b1[layer] = [-cell, -(cell + 1 - ramp), -(cell + 1)]
            w2[layer, CELL] = [-1, 1 / ramp, 1 - 1 / ramp]
        self.stack(w1, b1, w2)

    def empty(self, layers: int, units: int) -> tuple[Floats, Floats, Floats]:
        return np.zeros((layers, units, WIDTH)), np.zeros((layers, units)), np.zeros((layers, WIDTH, units))

    def stack(self, w1: Floats, b1: Floats, w2: Floats) -> None:
        name, (layers, units) = f"layers.{len(self.modules)}", b1.shape
        self.tensors |= {f"{name}.W_1": w1, f"{name}.b_1": b1, f"{name}.W_2": w2}
        kind = {"type": "ReluStack", "d_model": WIDTH, "d_hidden": units, "layers": layers, "fused": False}
        self.modules.append(kind)

    def attend(self, query: float, key: float, source: int, value: float, out: float) -> None:
        """Adds out · (the mean of value · z_source, over the tokens with the largest query · key · cell) to LEAST."""
        name = f"layers.{len(self.modules)}.attention."
        W_K, W_V, W_O = np.zeros((2, WIDTH)), np.zeros((2, WIDTH)), np.zeros((WIDTH, 2))
        W_K[0, CELL], W_V[0, source], W_O[LEAST, 0] = key, value, out
        self.tensors |= {f"{name}W_Q.weight": np.zeros((2, WIDTH)), f"{name}W_Q.bias": np.array([query, 0.0])}
        self.tensors |= {f"{name}W_K.weight": W_K, f"{name}W_V.weight": W_V, f"{name}W_O.weight": W_O}
        sizes = {"d_model": WIDTH, "nhead": 2, "d_head": 1, "query_bias": True, "scale": False}
        heads = {"type": "SoftmaxAttention", "normaliser": {"type": "Softmax"}, **sizes}
        bare = {"attention_norm": None, "feed_forward_norm": None, "dropout": 0.0}
        self.modules.append({"type": "ResidualBlock", "attention": heads, "feed_forward": {"type": "Zero"}, **bare})

    def save(self, folder: Path) -> Path:
        """Cuts the output to [0, largest], and signs."""
        values = self.modules[-1]["layers"]
        w1, b1, w2 = self.empty(1, 2)
        w1[0, :, OUT], w2[0, OUT], b1[0, 1] = [-1, 1], [1, -1], -self.largest
        self.stack(w1, b1, w2)
        ends = {"embedding.map.weight": (WIDTH, 1), "embedding.map.bias": WIDTH}
        ends |= {"head.map.weight": (1, WIDTH), "head.map.bias": 1}
        self.tensors |= {name: np.zeros(shape) for name, shape in ends.items()}
        self.tensors["embedding.map.weight"][CELL, 0], self.tensors["head.map.weight"][0, OUT] = 2, 1
        config = {
            "type": "DeepTransformer",
            "n": TOKENS,
            "embedding": {"type": "VectorEmbedding", "d_in": 1, "d_model": WIDTH},
            "layers": {"type": "torch.Sequential", "modules": self.modules},
            "head": {"type": "TokenHead", "d_model": WIDTH, "d_out": 1},
            "positions": None,
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config))
        save_file(self.tensors, folder / "model.safetensors")
        (folder / "certificate.json").write_text(json.dumps(self.certificate(len(self.modules) - 3, values)))
        return sign(folder)

    def certificate(self, mapping: int, values: int) -> dict[str, Any]:
        terms = [("cells", "enclosed", 0.017), ("tokens in equal cells", "enclosed", 0.017), ("ramps", "proved", 0.002)]
        layers = [("quantise", 2, "d/δ + d", 3), ("contextual mapping", mapping, "δ^{-d} + 1", 3)]
        layers.append(("value mapping", values, "1 + d + n·C(δ^{-d}, n)", 2 + TOKENS * comb(2, TOKENS)))
        constants = {"theorem": "Y Theorem 2", "n": TOKENS, "cells": 2, "parts": 1, "p": 1.0, "scale": 0}
        constants |= {"ramp": f"1/{int(1 / self.ramp)}", "temperature": None, "pattern": None, "places": None}
        names = ("step", "built", "formula", "count")
        constants |= {"layers": [dict(zip(names, row, strict=True)) for row in layers], "read_out_layers": 1}
        return {
            "target": "(x-mean(y))/1000",
            "d": 1,
            "box": "0:1",
            "tokens": str(TOKENS),
            "arithmetic": "float64",
            "route": "Y Theorem 2",
            "epsilon": 0.05,
            "latent_dimension": WIDTH,
            "terms": [dict(zip(("name", "kind", "bound"), term, strict=True)) for term in terms],
            "total": sum(bound for *_, bound in terms),
            "assumptions": list(OF_A_DEEP_NETWORK),
            "constants": constants,
            "architecture": "deep-transformer",
            "norm": "d_1",
            "not_claimed": list(NOT_CLAIMED),
            "version": 1,
        }
