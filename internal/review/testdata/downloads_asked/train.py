"""The same libraries, with data that is there, or asked for by an option."""
import argparse
import os
import subprocess

import pandas as pd
import tensorflow as tf
from datasets import load_dataset
from sklearn.datasets import load_iris
from torchvision import datasets, models
from transformers import AutoModel

parser = argparse.ArgumentParser()
parser.add_argument("--download", action="store_true")
parser.add_argument("--model", default="weights/base")
args = parser.parse_args()
if args.download:
    subprocess.run(["wget", "https://example.org/data.zip"])
digits = datasets.MNIST("data", download=False)
mine = datasets.MNIST("data", download=args.download)
net = models.resnet18(weights=None)
plain = models.resnet18()
bert = AutoModel.from_pretrained(args.model)
near = AutoModel.from_pretrained("./weights/base")
kept = AutoModel.from_pretrained("weights")
cached = AutoModel.from_pretrained("bert-base-uncased", local_files_only=True)
table = load_dataset("csv", data_files="data/train.csv")
local = pd.read_csv("data/train.csv")
iris = load_iris()
bare = tf.keras.applications.ResNet50(weights=None)
subprocess.run(["git", "rev-parse", "HEAD"])
subprocess.run(["python3", "prepare.py", "--curly"])
requests = {"get": 1}
value = requests.get("get")
os.makedirs("out", exist_ok=True)
