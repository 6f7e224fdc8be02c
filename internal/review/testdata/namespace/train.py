import datasets
from datasets import load_dataset
from parts import first
from parts import second  # want: error import_unresolved parts.second
