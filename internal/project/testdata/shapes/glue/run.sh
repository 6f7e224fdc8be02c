export TASK=mrpc
accelerate launch --num_processes 2 run_classification.py \
  --train_file data/$TASK.csv \
  --per_device_train_batch_size 32 \
  --learning_rate 2e-5 \
  --num_train_epochs 3 \
  --output_dir /tmp/$TASK
