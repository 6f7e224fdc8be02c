from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_steps", 10000, "optimizer steps")
flags.DEFINE_float("learning_rate", 1e-3, "peak learning rate")
flags.DEFINE_enum("schedule", "cosine", ["cosine", "constant"], "learning rate schedule")
flags.DEFINE_string("train_path", "data/train.jsonl", "training data")


def main(argv):
    print(FLAGS.num_steps)


if __name__ == "__main__":
    app.run(main)
