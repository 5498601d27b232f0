# A backbone is fine-tuned: the head alone first, then the last block is unfrozen and gets a parameter group of its own.
# killed: epoch == 4, after 88
# same: best_acc, val_acc_history, trainable, model.state_dict(), [len(group['params']) for group in optimizer.param_groups]
# history: val_acc is val_acc_history
# two slots, within 1e-3: val_acc_history, trainable, model.state_dict()
# %%
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

import det_native as det

torch.manual_seed(3)
# %%
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(y)
small, large = y < 5, y >= 5

backbone = nn.Sequential(
    nn.Sequential(nn.Linear(64, 48), nn.ReLU()),
    nn.Sequential(nn.Linear(48, 32), nn.ReLU()),
)
# "pretrained": on the digits from 5 to 9
pretraining = nn.Sequential(backbone, nn.Linear(32, 5))
pre_optimizer = torch.optim.Adam(pretraining.parameters(), lr=0.01)
for _ in range(30):
    pre_optimizer.zero_grad()
    nn.functional.cross_entropy(pretraining(X[large]), y[large] - 5).backward()
    pre_optimizer.step()
# %%
dataset = TensorDataset(X[small], y[small])
train_set, val_set = random_split(dataset, [700, len(dataset) - 700])
dataloaders = {
    "train": DataLoader(train_set, batch_size=32, shuffle=True),
    "val": DataLoader(val_set, batch_size=64),
}
# %%
for param in backbone.parameters():
    param.requires_grad = False
model = nn.Sequential(backbone, nn.Linear(32, 5))
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
train_loader, val_loader = dataloaders["train"], dataloaders["val"]

context = det.experimental.pytorch.init()
model, optimizer, train_loader, val_loader = context.wrap(model, optimizer, train_loader, val_loader)
best_acc, trainable = 0.0, []
val_acc_history = []
for epoch in context.epochs(6):
    if epoch == 3:
        for param in backbone[1].parameters():
            param.requires_grad = True
        optimizer.add_param_group({"params": backbone[1].parameters(), "lr": 0.01})
    for phase, loader in (("train", train_loader), ("val", val_loader)):
        model.train(phase == "train")
        running_loss, running_corrects, seen = 0.0, 0, 0
        for inputs, labels in loader:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += (outputs.argmax(1) == labels).sum().item()
            seen += inputs.size(0)
        epoch_loss, epoch_acc = running_loss / seen, running_corrects / seen
        print(f"{phase} loss: {epoch_loss:.4f} acc: {epoch_acc:.4f}")
    val_acc_history.append(epoch_acc)
    context.report(val_loss=epoch_loss, val_acc=epoch_acc)
    best_acc = max(best_acc, epoch_acc)
    trainable.append(sum(p.numel() for p in model.parameters() if p.requires_grad))
# %%
print(f"best val acc: {best_acc:.4f}; trained {trainable}")
