"""Constants at the top; a file or --key=value on the command line replaces them."""
import torch

out_dir = "out"
dataset = "letters"
batch_size = 12
gradient_accumulation_steps = 40
max_iters = 5000
learning_rate = 6e-4
weight_decay = 1e-1
grad_clip = 1.0
dtype = "bfloat16"
init_from = "scratch"  # or resume
exec(open("configurator.py").read())

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay, betas=(0.9, 0.95))
for step in range(max_iters):
    loss = model(torch.randn(batch_size, 3)).sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
