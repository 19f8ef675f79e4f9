"""Random small targets of the kinds that are compiled: polynomials, functions of means, normalised kernels."""

from __future__ import annotations

import random

from sumformer.targets import Target, target

TEMPLATES = (
    "{a}*x - {b}*mean(y)**2",
    "x*mean({a}*y**2 - {b}*y) + {c}",
    "sum_others(y)*x**2 - {a}*x",
    "mean_others((x - y)**2)*{b} + {a}*x",
    "mean((y - mean(y))**2)*{a} - x",
    "exp(-{a}*mean(y))*x + {b}",
    "sin({a}*x + {b}*mean(y))",
    "sqrt({a} + mean((y - mean(y))**2))",
    "tanh({a}*x*sum(y))",
    "(x - mean(y))/({a} + mean(y**2))",
    "log(1 + {a}*sum(norm2(x - y)))",
    "mean(exp(-{a}*norm2(x - y)))",
    "mean(y/(1 + {b}*norm2(x - y)))",
    "sum(exp({a}*dot(x, y))*y)/sum(exp({a}*dot(x, y)))",
    "sum(exp(-{a}*norm2(x - y))*y)/sum(exp(-{a}*norm2(x - y)))",
    "max(x, {b}*mean(y)) + abs(x - {a})",
    "mean(sigmoid({c}*(x - y)))",
)
HEAVY = ("norm2(x - y)))", "1 + {b}*norm2", "dot(x, y))")


def random_case(seed: int) -> tuple[Target, float, str, str]:
    """(target, ε, architecture, prefer)."""
    r = random.Random(seed)
    template = r.choice(TEMPLATES)
    heavy = any(part in template for part in HEAVY) or "exp(" in template
    d = 1 if heavy else r.choice([1, 2])
    numbers = {name: f"{r.uniform(0.2, 1.5):.3g}" for name in "abc"}
    box = r.choice([None, "0:1", "-1:1", "0.25:1.5"]) if not heavy else None
    f = target(template.format(**numbers), n=r.randint(2, 5), d=d, box=box)
    architecture = r.choice(["transformer", "linformer", "performer"])
    return f, r.choice([0.2, 0.05, 0.01]), architecture, r.choice(["parameters", "depth", "width"])
