_base_ = ["_default.py"]
optim_wrapper = dict(optimizer=dict(type="SGD", lr=0.02, momentum=0.9, weight_decay=0.0001), clip_grad=dict(max_norm=35))
train_cfg = dict(max_epochs=12, val_interval=1)
train_dataloader = dict(batch_size=2, num_workers=2)
