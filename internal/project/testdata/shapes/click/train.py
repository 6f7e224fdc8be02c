import click
import torch

SEED = 11


@click.command()
@click.option("--train-csv", default="data/train.csv", help="training rows")
@click.option("--epochs", "-e", default=25, type=int)
@click.option("--lr", default=5e-4, type=float)
@click.option("--optimizer", type=click.Choice(["adam", "sgd"]), default="adam")
@click.option("--amp/--no-amp", default=False)
def main(train_csv, epochs, lr, optimizer, amp):
    torch.manual_seed(SEED)


if __name__ == "__main__":
    main()
