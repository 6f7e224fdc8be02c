from dataclasses import dataclass


@dataclass
class Config:
    epochs: int = 30
    learning_rate: float = 2e-4
    batch_size: int = 16
    history_window: int = 6
    forecast_horizon: int = 1
    seed: int = 1
