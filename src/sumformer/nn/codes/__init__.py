"""Codes of A 2.13: φ on cells 0 … K−1 such that Σ_k φ(c_k) over up to n tokens determines the multiset of the c_k."""

from sumformer.nn.codes.code import CODES as CODES
from sumformer.nn.codes.code import Code as Code
from sumformer.nn.codes.code import check_code as check_code
from sumformer.nn.codes.code import make_code as make_code
from sumformer.nn.codes.code import smallest_code as smallest_code
from sumformer.nn.codes.integer_code import IntegerCode as IntegerCode
from sumformer.nn.codes.lane_code import LaneCode as LaneCode
from sumformer.nn.codes.syndrome_code import SyndromeCode as SyndromeCode
