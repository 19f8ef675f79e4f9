"""Gradient descent on the definitions: data, networks by name, a training loop that loses nothing."""

from sumformer.learn.architectures import ARCHITECTURES as ARCHITECTURES
from sumformer.learn.arrays import sets_from_arrays as sets_from_arrays
from sumformer.learn.evaluation import examine as examine
from sumformer.learn.fitted import Fitted as Fitted
from sumformer.learn.fitted import load_fitted as load_fitted
from sumformer.learn.fitting import Folder as Folder
from sumformer.learn.fitting import fit as fit
from sumformer.learn.reading import Reading as Reading
from sumformer.learn.reading import read as read
from sumformer.learn.sampling import Sampling as Sampling
from sumformer.learn.sets import Sets as Sets
from sumformer.learn.sets import Task as Task
from sumformer.learn.settings import Settings as Settings
