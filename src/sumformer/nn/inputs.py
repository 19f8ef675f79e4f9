"""What every module checks before it computes: rank, width, masks. Errors name the call, what was expected, what came.

Two conventions, as users of PyTorch know them: models take `attention_mask` (1 = keep), drop-in layers take
`key_padding_mask` (True = ignore). Inside, both become one boolean `keep` of shape (batch, n).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec

import torch
from torch import Tensor, nn

from sumformer.errors import DtypeError, InputError, ShapeError

P = ParamSpec("P")

_CONVERSION = {torch.float64: ".double()", torch.float32: ".float()"}
_INTEGER_DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_tokens(where: str, x: Tensor, width: int | None = None) -> Tensor:
    """x must be a floating (batch, n, width) tensor with n ≥ 1."""
    if not isinstance(x, Tensor):
        raise DtypeError(where, "a torch.Tensor of shape (batch, n, d)", type(x).__name__)
    shape = x.shape
    if len(shape) != 3 or shape[1] == 0 or (width is not None and shape[2] != width):
        wanted = f"a tensor of shape (batch, n, {'d' if width is None else width})"
        empty = len(shape) == 3 and (width is None or shape[2] == width)
        raise ShapeError(where, f"{wanted} with at least one token" if empty else wanted, shape)
    if not x.is_floating_point():
        raise DtypeError(where, "a floating-point tensor", x.dtype)
    return x


def check_piece(where: str, x: Tensor, width: int | None, state: object, kind: type) -> Tensor:
    """As `check_tokens`, of the next tokens of a stream; its state is what the last call returned, at first None."""
    if state is not None and not isinstance(state, kind):
        raise InputError(
            f"{where}: expected as state the {kind.__name__} that its last call returned, or None, "
            f"got {type(state).__name__}"
        )
    check_tokens(where, x, width)
    numbers = {} if state is None or kind is int else vars(state)
    held = next((value for value in numbers.values() if isinstance(value, Tensor)), None)
    if held is not None and held.shape[0] != x.shape[0]:
        raise ShapeError(where, f"tokens of the {held.shape[0]} sequences that its state is of", x.shape)
    return x


def with_dtypes_named(forward: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """`forward` of a module: where torch fails on tokens of a dtype that no weight has, an error that names both.

    Nothing is checked before: autocast and modules that promote go their way, and the compiler sees `forward` alone.
    """

    @wraps(forward)
    def run(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        if torch.compiler.is_compiling():
            return forward(*args, **kwargs)
        try:
            return forward(*args, **kwargs)
        except RuntimeError as error:
            named = _other_dtype(args, kwargs)
            if named is None:
                raise
            raise named from error

    return run


def _other_dtype(args: tuple[object, ...], kwargs: Mapping[str, object]) -> DtypeError | None:
    module, x = args[0], args[1] if len(args) > 1 else kwargs.get("x")
    if not isinstance(module, nn.Module) or not isinstance(x, Tensor) or not x.is_floating_point():
        return None
    held = {p.dtype for p in module.parameters() if p.is_floating_point()}
    if x.dtype in held or len(held) != 1:
        return None
    (dtype,) = held
    ways = f"convert the tokens, x{_CONVERSION.get(dtype, f'.to({dtype})')}"
    ways = f"{ways}, or the module, module{_CONVERSION.get(x.dtype, f'.to({x.dtype})')}"
    return DtypeError(type(module).__name__, f"{dtype} tokens, as its weights are ({ways})", x.dtype)


def check_width(where: str, x: Tensor, width: int) -> Tensor:
    """x must be a (…, width) tensor: what a token-wise map asks of its argument."""
    if not isinstance(x, Tensor):
        raise DtypeError(where, f"a torch.Tensor of shape (…, {width})", type(x).__name__)
    if x.dim() == 0 or x.shape[-1] != width:
        raise ShapeError(where, f"a tensor of shape (…, {width})", x.shape)
    return x


def keep_from_attention_mask(where: str, x: Tensor, attention_mask: Tensor | None) -> Tensor | None:
    """`attention_mask` (batch, n), boolean or integer, 1 = keep  →  boolean keep."""
    if attention_mask is None:
        return None
    _check_mask(where, "attention_mask", x, attention_mask)
    if attention_mask.dtype not in _INTEGER_DTYPES:
        raise DtypeError(where, "attention_mask of a boolean or integer dtype (1 = keep)", attention_mask.dtype)
    return attention_mask != 0


def keep_from_key_padding_mask(where: str, x: Tensor, key_padding_mask: Tensor | None) -> Tensor | None:
    """`key_padding_mask` (batch, n), boolean, True = ignore  →  boolean keep."""
    if key_padding_mask is None:
        return None
    _check_mask(where, "key_padding_mask", x, key_padding_mask)
    if key_padding_mask.dtype != torch.bool:
        raise DtypeError(where, "a boolean key_padding_mask (True = ignore)", key_padding_mask.dtype)
    return ~key_padding_mask


def zero_padding(x: Tensor, keep: Tensor | None) -> Tensor:
    """Padding becomes exactly 0, whatever it held; its gradient is exactly 0 even where it held NaN or inf."""
    if keep is None:
        return x
    return torch.where(keep.unsqueeze(-1), x, torch.zeros((), dtype=x.dtype, device=x.device))


def rank_among_kept(keep: Tensor) -> Tensor:
    """(batch, n) boolean → the place of each real token among the real tokens, from 0; padding gets 0."""
    return torch.where(keep, keep.long().cumsum(-1) - 1, 0)


def _check_mask(where: str, name: str, x: Tensor, mask: Tensor) -> None:
    if not isinstance(mask, Tensor):
        raise DtypeError(where, f"{name} as a torch.Tensor", type(mask).__name__)
    if mask.dim() != 2 or mask.shape[0] != x.shape[0] or mask.shape[1] != x.shape[1]:
        raise ShapeError(where, f"{name} of shape (batch, n) = {tuple(x.shape[:2])}", mask.shape)
