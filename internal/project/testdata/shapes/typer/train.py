from pathlib import Path

import typer
from typing_extensions import Annotated

app = typer.Typer()


@app.command()
def train(
    data: Path,
    epochs: int = 10,
    lr: Annotated[float, typer.Option(help="peak learning rate")] = 1e-3,
    batch_size: int = typer.Option(32, "--batch-size", "-b"),
    seed: int = 0,
):
    print(data, epochs, lr, batch_size, seed)


if __name__ == "__main__":
    app()
