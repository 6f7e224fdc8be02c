import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config", help="train config file path")
    parser.add_argument("--work-dir", help="the dir to save logs and models")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--amp", action="store_true", default=False)
    parser.parse_args()


if __name__ == "__main__":
    main()
