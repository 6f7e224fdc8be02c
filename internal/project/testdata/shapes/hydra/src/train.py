import hydra
from omegaconf import DictConfig


@hydra.main(version_base="1.3", config_path="../configs", config_name="train.yaml")
def main(cfg: DictConfig) -> None:
    print(cfg.trainer.max_epochs)


if __name__ == "__main__":
    main()
