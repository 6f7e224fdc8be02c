python src/train.py trainer.max_epochs=5 data.batch_size=64
