"""M small models trained as one: batched matrix products, one optimiser, a CUDA graph on GPU, all threads of a CPU."""

from sumformer.learn.ensemble.member import Member as Member
from sumformer.learn.ensemble.recipe import Recipe as Recipe
from sumformer.learn.ensemble.sumformers import SumformerEnsemble as SumformerEnsemble
from sumformer.learn.ensemble.training import History as History
from sumformer.learn.ensemble.training import train as train
