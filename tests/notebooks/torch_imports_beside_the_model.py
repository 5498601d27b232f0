# Each cell imports what it needs; a loss of one's own, an accuracy by numpy, and a seed.
# plain: the same losses
# %%
import torch
from torch import nn
from sklearn.datasets import load_digits

torch.manual_seed(42)
digits = load_digits()

class SmoothLoss(nn.Module):
    """Cross entropy with smoothed labels."""
    def __init__(self, classes, smoothing=0.1):
        super().__init__()
        self.classes, self.smoothing = classes, smoothing

    def forward(self, scores, labels):
        logs = torch.log_softmax(scores, 1)
        wanted = torch.full_like(logs, self.smoothing / (self.classes - 1))
        wanted.scatter_(1, labels[:, None], 1 - self.smoothing)
        return torch.mean(torch.sum(-wanted * logs, 1))
# %%
import numpy as np
from torch.utils.data import DataLoader, TensorDataset, random_split

images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
data = TensorDataset(images, torch.tensor(digits.target))
train_set, val_set = random_split(data, [1400, 397])

def accuracy(scores, labels):
    return np.mean(np.argmax(scores.detach().numpy(), 1) == labels.numpy())
# %%
import det_native as det

context = det.experimental.pytorch.init({"description": "digits"})
torch.manual_seed(42)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10))
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
criterion = SmoothLoss(10)

def train_batch(batch, epoch_idx, batch_idx):
    images, labels = batch
    loss = criterion(model(images), labels)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

def evaluate_batch(batch):
    images, labels = batch
    scores = model(images)
    return {"val_loss": criterion(scores, labels), "val_accuracy": accuracy(scores, labels)}

experiment = context.fit(DataLoader(train_set, batch_size=50), DataLoader(val_set, batch_size=400),
                         train_batch=train_batch, evaluate_batch=evaluate_batch, epochs=2)
# %%
experiment.wait()
print(experiment.history["val_accuracy"])
