from config import Config
import torch


def main(cfg: Config = Config()):
    torch.manual_seed(cfg.seed)
    model = torch.nn.Linear(cfg.history_window, cfg.forecast_horizon)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.learning_rate)
    loss = torch.nn.MSELoss()
    for epoch in range(cfg.epochs):
        optimizer.step()


if __name__ == "__main__":
    main()
