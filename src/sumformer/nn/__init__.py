"""The definitions, one per file."""

from sumformer.nn.deep_sets import DeepSets as DeepSets
from sumformer.nn.deep_sets import mlp_deep_sets as mlp_deep_sets
from sumformer.nn.mlp import MLP as MLP
from sumformer.nn.pair_mlp import Concatenated as Concatenated
from sumformer.nn.pair_mlp import PairMLP as PairMLP
from sumformer.nn.polynomial_features import PolynomialFeatures as PolynomialFeatures
from sumformer.nn.pretrained import PretrainedModule as PretrainedModule
from sumformer.nn.sum_mixer import SumMixer as SumMixer
from sumformer.nn.sumformer import Sumformer as Sumformer
from sumformer.nn.sumformer import mlp_sumformer as mlp_sumformer
from sumformer.nn.sumformer import polynomial_sumformer as polynomial_sumformer
from sumformer.nn.summary import Summary as Summary
