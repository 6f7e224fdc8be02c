# The method under a shorter name, a parser kept on self, and Windows line ends.
from argparse import ArgumentParser as AP, SUPPRESS
class Cli:
    def __init__(self):
        self.parser = AP()
        arg = self.parser.add_argument
        arg("train_csv")
        arg("test_csv", nargs="?", default="test.csv")
        arg("--optimizer", default='adamw', choices=['sgd', 'adamw'])
        arg("--scheduler", default=SUPPRESS)
        self.parser.add_argument("--split-seed", "--split_seed", type=int, default=17)
        self.parser.add_argument("--test-size", type=float, default=.2)
        self.parser.add_argument("--val-size", type=float, default=.1)
        self.parser.add_argument("--train", action="store_true", help="train, not only evaluate")
