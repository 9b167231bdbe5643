"""fklarray: deferred arrays of the array API standard that run as fused kernels."""

from fklarray.array import Array as Array
from fklarray.array import materialize as materialize
from fklarray.config import config as config
from fklarray.constants import *
from fklarray.conversion import *
from fklarray.creation import *
from fklarray.data_type_functions import *
from fklarray.data_types import *
from fklarray.device import Device as Device
from fklarray.elementwise import *
from fklarray.inspection import *
from fklarray.manipulation import *
from fklarray.searching import *
from fklarray.unavailable import *

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
