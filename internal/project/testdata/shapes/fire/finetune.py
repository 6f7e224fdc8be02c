import fire
import torch

CONFIG = {"optimizer": "adamw", "scheduler": "linear", "loader": {"num_workers": 2}}


def train(data_path: str = "alpaca.json", num_epochs: int = 3, learning_rate: float = 3e-4, micro_batch_size: int = 4, resume_from_checkpoint: str = None):
    print(CONFIG["optimizer"])


if __name__ == "__main__":
    fire.Fire(train)
