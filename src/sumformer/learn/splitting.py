"""{1 … N} = train ⊎ validation ⊎ test, and the order of training sets in each epoch: functions of the seed alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from sumformer.errors import InputError


@dataclass(frozen=True)
class Split:
    """Places of sets. With nothing held out for validation, the training sets serve."""

    train: Tensor
    validation: Tensor
    test: Tensor


def split(count: int, validation: float, test: float, seed: int) -> Split:
    """Shares of `count`, at least one set each where a share is asked for."""
    held = [0 if not share else max(1, round(share * count)) for share in (test, validation)]
    if count - sum(held) < 1:
        sets = "1 set is" if count == 1 else f"{count} sets are"
        raise InputError(f"{sets} too few: {held[1]} for validation and {held[0]} for testing leave none for training")
    order = permutation(count, "split", seed)
    first, second = held[0], held[0] + held[1]
    train = order[second:].sort().values
    return Split(train, order[first:second].sort().values if held[1] else train, order[:first].sort().values)


def permutation(count: int, purpose: str, *numbers: int) -> Tensor:
    """A permutation of 0 … count − 1 that is a function of its arguments."""
    digest = hashlib.sha256("/".join([purpose, *map(str, numbers)]).encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return torch.randperm(count, generator=generator)
