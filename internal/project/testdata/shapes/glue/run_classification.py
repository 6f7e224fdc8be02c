from dataclasses import dataclass, field
from typing import Optional

from transformers import HfArgumentParser, Trainer, TrainingArguments


@dataclass
class DataArguments:
    train_file: Optional[str] = field(default="train.csv", metadata={"help": "A csv file with the training data."})
    validation_file: Optional[str] = field(default=None, metadata={"help": "A csv file with the validation data."})
    max_seq_length: int = field(default=128)


def main():
    parser = HfArgumentParser((DataArguments, TrainingArguments))
    data_args, training_args = parser.parse_args_into_dataclasses()
    trainer = Trainer(model=None, args=training_args)
    trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)


if __name__ == "__main__":
    main()
