# Declarations over several lines, with comments, groups and constants.
import argparse
import os
from pathlib import Path

LEARNING_RATE = 1e-3  # tuned on the dev set
SEED: int = 1_7
MODELS = ("unet", "fno")
EPOCHS = 10
EPOCHS = 20
HERE = Path(__file__).parent

parser = argparse.ArgumentParser()
data = parser.add_argument_group(
    "data",
    "where (the) data lies",
)
data.add_argument(
    "--train-file",
    "-t",
    # a comment with "quotes" and a ( bracket
    type=Path,
    default=HERE / "train.csv",
    help="""the training
table""",
)
data.add_argument("--features", nargs="+", default=["lat", 'lon'])
opt = parser.add_mutually_exclusive_group(required=True)
opt.add_argument("--learning-rate", "--lr", type=float,
                 default=LEARNING_RATE)
opt.add_argument("--base-lr", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=SEED); parser.add_argument("--epochs", default=EPOCHS)
parser.add_argument_group("model").add_argument("--model", choices=MODELS, default=MODELS[0])
parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--weight-decay", type=float, default="0.01")
parser.add_argument("--clip", type=float, default=-1)
parser.add_argument("--loss", type=str.lower, default=f"mse")
parser.add_argument("--workers", type=int, default=os.cpu_count())
parser.add_argument("-v", action="count", default=0, dest="verbosity")
parser.add_argument("--no-cache", dest="cache", action="store_false")
parser.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.999))
