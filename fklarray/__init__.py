"""fklarray: deferred arrays of the array API standard that run as fused kernels."""

from fklarray import fft as fft
from fklarray import linalg as linalg
from fklarray import special as special
from fklarray.array import Array as Array
from fklarray.array import materialize as materialize
from fklarray.config import config as config
from fklarray.constants import *
from fklarray.conversion import *
from fklarray.creation import *
from fklarray.data_type_functions import *
from fklarray.data_types import *
from fklarray.device import Device as Device
from fklarray.device import default_device as default_device
from fklarray.elementwise import *
from fklarray.extensions import *
from fklarray.index_functions import *
from fklarray.inspection import *
from fklarray.joining import *
from fklarray.linear_algebra import *
from fklarray.manipulation import *
from fklarray.nan_reductions import *
from fklarray.nn import logsumexp as logsumexp
from fklarray.searching import *
from fklarray.searching_reductions import *
from fklarray.set_functions import *
from fklarray.sorting import *
from fklarray.statistical import *
from fklarray.utility import *

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
