import argparse
import deepspeed

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--local_rank", type=int, default=-1)
parser = deepspeed.add_config_arguments(parser)


def main():
    args = parser.parse_args()
    engine, optimizer, _, _ = deepspeed.initialize(args=args, model=None)
    for epoch in range(args.epochs):
        engine.backward(None)
        engine.step()


if __name__ == "__main__":
    main()
