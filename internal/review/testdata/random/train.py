import random

import numpy as np
import tensorflow as tf
import torch
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader

rows = list(range(100))
random.shuffle(rows)  # want: warning randomness_unseeded
train, test = train_test_split(rows, test_size=0.2)  # want: warning randomness_unseeded
weights = np.random.randn(10)
rng = np.random.default_rng()
net = nn.Linear(4, 2)  # want: warning randomness_unseeded
loader = DataLoader(train, shuffle=True)
noise = tf.random.normal((2, 2))  # want: warning randomness_unseeded
