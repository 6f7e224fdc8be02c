from .blocks import Block
from . import heads
from .lost import Lost  # want: error import_unresolved .lost


class Net(Block):
    pass
