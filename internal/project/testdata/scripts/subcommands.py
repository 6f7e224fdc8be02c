import argparse


def add_common(p):
    p.add_argument("config", help="path of the configuration")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")


def build():
    root = argparse.ArgumentParser()
    sub = root.add_subparsers(dest="command", required=True)

    train = sub.add_parser("train", help="fit the model")
    add_common(train)
    group = train.add_argument_group("training")
    group.add_argument("--epochs", type=int, default=5)
    group.add_argument("--data", default="data/all.csv")
    train.set_defaults(func=fit, epochs=12)

    p = sub.add_parser(name="predict")
    p = sub.add_parser("evaluate")
    p.add_argument("--data", required=True)
    for name in ("rmse", "mae"):
        p.add_argument("--" + name, action="store_true")
    p.add_argument(*["--tta"], type=int)
    return root


def fit(args): ...


if '__main__' == __name__: build().parse_args()
