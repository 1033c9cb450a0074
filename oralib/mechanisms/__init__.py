"""The paper's mechanisms, each as a frozen dataclass that can be run and, if discrete, tabulated.

A dataset is a vector of signs s in {-1, 1}^n: the auditor's coins. Where the paper works with
bits, -1 stands for 0 and 1 for 1. Leading axes are independent runs. What a guesser needs is the
distributional privacy loss of an element given the output,
ℓ_i(o) = ln P[O = o | S_i = -1] - ln P[O = o | S_i = 1], negative where 1 is the likelier value.
"""

from oralib.mechanisms.all_or_nothing import AllOrNothing
from oralib.mechanisms.count import Count
from oralib.mechanisms.count_in_sets import CountInSets
from oralib.mechanisms.local_laplace import LocalLaplace
from oralib.mechanisms.local_randomized_response import LocalRandomizedResponse
from oralib.mechanisms.name_and_shame import NameAndShame
from oralib.mechanisms.noisy_count_in_sets import NoisyCountInSets
from oralib.mechanisms.protocol import DiscreteMechanism, Mechanism, Signs, sign_vectors
from oralib.mechanisms.xor import Xor
from oralib.mechanisms.xor_in_pairs import XorInPairs
from oralib.mechanisms.xor_randomized_response import XorRandomizedResponse

__all__ = ["AllOrNothing", "Count", "CountInSets", "DiscreteMechanism", "LocalLaplace"]
__all__ += ["LocalRandomizedResponse", "Mechanism", "NameAndShame", "NoisyCountInSets", "Signs"]
__all__ += ["Xor", "XorInPairs", "XorRandomizedResponse", "sign_vectors"]
