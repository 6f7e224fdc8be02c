import random

import numpy as np
import torch

from common import set_seed

set_seed(3)
random.shuffle([1, 2])
np.random.shuffle(np.arange(3))
net = torch.nn.Linear(2, 2)
