# A CNN on digits with dropout and a scheduler: a confusion matrix, per-class accuracy, the last rate and a table below.
# plain: the same losses
# same: cm, model.state_dict(), scheduler.get_last_lr(), optimizer.param_groups[0]["lr"], report_card, wrong
# %%
import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

import det_native as det

context = det.experimental.pytorch.init({"hyperparameters": {"lr": 0.01, "dropout": 0.25}})
torch.manual_seed(0)
np.random.seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# %%
class DigitsDataset(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image = torch.from_numpy(self.images[idx] / 16.0).float().unsqueeze(0)
        return image, int(self.labels[idx])

digits = load_digits()
train_x, test_x, train_y, test_y = train_test_split(digits.images, digits.target, test_size=0.3, random_state=42)
train_loader = DataLoader(DigitsDataset(train_x, train_y), batch_size=64, shuffle=True)
test_loader = DataLoader(DigitsDataset(test_x, test_y), batch_size=128)
# %%
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Dropout2d(context.get_hparam("dropout")),
    nn.Flatten(), nn.Linear(256, 10),
).to(device)
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(optim.Adam(model.parameters(), lr=context.get_hparam("lr")))
scheduler = context.wrap_lr_scheduler(
    optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5),
    step_mode=det.pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)
# %%
criterion = nn.CrossEntropyLoss()
for images, labels in context.train(train_loader, epochs=3):
    outputs = model(images)
    loss = criterion(outputs, labels)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss, accuracy=(outputs.argmax(1) == labels).float().mean())
# %%
@torch.no_grad()
def evaluate(loader):
    model.eval()
    y_true, y_pred = [], []
    for images, labels in loader:
        y_pred.extend(model(images.to(device)).argmax(1).cpu().tolist())
        y_true.extend(labels.tolist())
    return np.array(y_true), np.array(y_pred)

y_true, y_pred = evaluate(test_loader)
cm = confusion_matrix(y_true, y_pred)
print(cm)
# %%
report_card = classification_report(y_true, y_pred, zero_division=0)
wrong = [int(i) for i in np.flatnonzero(y_true != y_pred)[:5]]
pd.DataFrame(cm).style.background_gradient()
# %%
print(f"last learning rate: {scheduler.get_last_lr()[0]:.5f}")
assert np.trace(cm) / cm.sum() > 0.7
