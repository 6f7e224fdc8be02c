"""Every generator has its seed."""
import random

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, train_test_split
from torch import nn
from torch.utils.data import DataLoader, random_split

SEED = 7
rng = random.Random(SEED)
rng.shuffle([1, 2, 3])
resumed = random.Random()
resumed.setstate(rng.getstate())
generator = np.random.default_rng(SEED)
generator.normal(size=3)
rows = pd.DataFrame({"a": [1, 2]}).sample(frac=1, random_state=SEED)
train, test = train_test_split(rows, random_state=SEED)
forest = RandomForestClassifier(random_state=SEED)
folds = KFold(5)
ordered = train_test_split(rows, shuffle=False)
torch.manual_seed(SEED)
net = nn.Linear(4, 2)
loader = DataLoader([1], shuffle=True)
parts = random_split([1, 2], [1, 1], generator=torch.Generator().manual_seed(SEED))
