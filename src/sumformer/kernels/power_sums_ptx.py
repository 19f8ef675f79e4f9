"""A tile of power sums as one PTX block for a few tokens: sums in, sums out, values in registers of their own.

One block instead of a thousand operations, because compiling should take seconds; `add.rn` and `fma.rn` also keep the
compiler from pairing additions into vectors, which costs registers.
"""

from __future__ import annotations

from functools import cache

from sumformer.kernels.power_sums_plan import FEATURE, FMS, FMS_ONE, MULTIPLY, TWICE, Tile


@cache
def tokens_code(tile: Tile, d: int, count: int, weighted: bool) -> str:
    """sums', from (sums, the coordinates of `count` tokens[, their weights]): + v_i v_j, or + (weight · v_i) v_j."""
    size = len(tile.features)
    most = d + sum(op[0] != FEATURE for op in tile.code)
    lines = [f".reg .f32 v<{count * most}>, n<{count * most}>, w<{count * most}>;"]
    for s in range(count):
        coordinates = [f"${2 * size + s * d + c}" for c in range(d)]
        weight = f"${2 * size + count * d + s}" if weighted else None
        lines += _token(tile, coordinates, weight, s * most, s == 0)
    return "{ " + " ".join(lines) + " }"


def _token(tile: Tile, names: list[str], weight: str | None, first: int, new: bool) -> list[str]:
    lines, done = [], 0
    left = {}
    for kind, i, j, k in tile.code:
        name = f"v{first + len(names)}"
        if kind == FEATURE:
            if i not in left:
                left[i] = names[i] if weight is None else f"w{first + i}"
                lines += [] if weight is None else [f"mul.rn.f32 {left[i]}, {names[i]}, {weight};"]
            before = f"${len(tile.features) + done}" if new else f"${done}"
            if j < 0:
                lines.append(f"add.rn.f32 ${done}, {before}, {left[i]};")
            else:
                lines.append(f"fma.rn.f32 ${done}, {left[i]}, {names[j]}, {before};")
            done += 1
            continue
        if kind == MULTIPLY:
            lines.append(f"mul.rn.f32 {name}, {names[i]}, {names[j]};")
        elif kind == TWICE:
            lines.append(f"add.rn.f32 {name}, {names[i]}, {names[i]};")
        elif kind == FMS:
            minus = f"n{first + len(names)}"
            lines += [f"neg.f32 {minus}, {names[k]};", f"fma.rn.f32 {name}, {names[i]}, {names[j]}, {minus};"]
        elif kind == FMS_ONE:
            lines.append(f"fma.rn.f32 {name}, {names[i]}, {names[j]}, 0fBF800000;")
        names.append(name)
    return lines


@cache
def carry_code(size: int, backward: bool) -> str:
    """(high', low') from (high, low): high' = high + low rounded, low' = low − (high' − high); last first if asked.

    Forward and backward in turn lets a register that one sum leaves be taken by its neighbour.
    """
    lines = [".reg .f32 t;"]
    for f in range(size - 1, -1, -1) if backward else range(size):
        high, low, old_high, old_low = (f"${place * size + f}" for place in range(4))
        lines += [f"add.rn.f32 {high}, {old_high}, {old_low};", f"sub.rn.f32 t, {high}, {old_high};"]
        lines.append(f"sub.rn.f32 {low}, {old_low}, t;")
    return "{ " + " ".join(lines) + " }"


@cache
def constraints(outputs: int, inputs: int) -> str:
    return ",".join(["=&f"] * outputs + ["f"] * inputs)
