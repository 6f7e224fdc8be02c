import argparse

from detect import build, get_cfg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config-file", default="configs/small.yaml")
    parser.add_argument("opts", nargs=argparse.REMAINDER, default=[])
    args = parser.parse_args()
    cfg = get_cfg()
    cfg.merge_from_file(args.config_file)
    cfg.merge_from_list(args.opts)
    build(cfg).train()


if __name__ == "__main__":
    main()
