import math

from ..model import heads
from .heads import Head


class Block:
    size = math.prod((2, 3))
