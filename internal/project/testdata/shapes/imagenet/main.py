import argparse
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("data", metavar="DIR", help="path to dataset")
parser.add_argument("-a", "--arch", default="resnet18")
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--lr", "--learning-rate", default=0.1, type=float)
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float)
parser.add_argument("--resume", default="", type=str)
parser.add_argument("--seed", default=None, type=int)


def main():
    args = parser.parse_args()
    model = nn.Linear(3, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.wd)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        loss = criterion(model(torch.randn(2, 3)), torch.tensor([0, 1]))
        loss.backward()
        optimizer.step()
        scheduler.step()


if __name__ == "__main__":
    main()
