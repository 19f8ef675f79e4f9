"""The value of a width-1 expression at points, by the language's own evaluator in plain float64 tensors."""

import torch

from sumformer.targets.evaluate import Environment, evaluate
from sumformer.targets.torch_evaluation import TorchOperations


def number(node, x, y):
    ops = TorchOperations(torch.float64, torch.device("cpu"))
    env = Environment(x=torch.tensor(x, dtype=torch.float64), y=torch.tensor(y, dtype=torch.float64))
    return float(evaluate(node, ops, env))
