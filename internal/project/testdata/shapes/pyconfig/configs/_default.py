optim_wrapper = dict(optimizer=dict(lr=0.1, momentum=0.5))
param_scheduler = dict(type="CosineAnnealingLR", T_max=12)
randomness = dict(seed=5)
