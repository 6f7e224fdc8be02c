import pytorch_lightning as pl
import torch


class Net(pl.LightningModule):
    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)]


def main():
    pl.seed_everything(42)
    loader = torch.utils.data.DataLoader([], batch_size=64, num_workers=4)
    trainer = pl.Trainer(max_epochs=20, precision="16-mixed", gradient_clip_val=0.5, accumulate_grad_batches=2, devices=2)
    trainer.fit(Net(), loader)


if __name__ == "__main__":
    main()
