import os
import subprocess
import urllib.request
from urllib.request import urlretrieve as fetch

import nltk
import pandas as pd
import requests
import tensorflow as tf
import torch
import torchvision
from datasets import load_dataset
from huggingface_hub import hf_hub_download
from sklearn.datasets import fetch_california_housing, load_iris
from torchvision import datasets, models
from transformers import AutoModel, AutoTokenizer

if not os.path.exists("data.csv"):
    fetch("https://example.org/data.csv", "data.csv")  # want: warning hidden_download
body = urllib.request.urlopen("https://example.org").read()  # want: warning hidden_download
page = requests.get("https://example.org")  # want: warning hidden_download
subprocess.run(["wget", "-q", "https://example.org/data.zip"])  # want: warning hidden_download
os.system("curl -L https://example.org/data.zip -o data.zip && unzip data.zip")  # want: warning hidden_download
subprocess.check_call("pip install torch", shell=True)  # want: warning hidden_download
net = torch.hub.load("pytorch/vision", "resnet18")  # want: warning hidden_download
digits = datasets.MNIST("data", train=True, download=True)  # want: warning hidden_download
resnet = models.resnet50(weights=models.ResNet50_Weights.DEFAULT)  # want: warning hidden_download
old = torchvision.models.resnet18(pretrained=True)  # want: warning hidden_download
bert = AutoModel.from_pretrained("bert-base-uncased")  # want: warning hidden_download
words = AutoTokenizer.from_pretrained(pretrained_model_name_or_path="org/name")  # want: warning hidden_download
imdb = load_dataset("imdb")  # want: warning hidden_download
weights = hf_hub_download(repo_id="org/name", filename="model.bin")  # want: warning hidden_download
houses = fetch_california_housing()  # want: warning hidden_download
nltk.download("punkt")  # want: warning hidden_download
remote = pd.read_csv("https://example.org/data.csv")  # want: warning hidden_download
cifar = tf.keras.datasets.cifar10.load_data()  # want: warning hidden_download
imagenet = tf.keras.applications.ResNet50()  # want: warning hidden_download
