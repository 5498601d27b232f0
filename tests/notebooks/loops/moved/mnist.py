# A CNN on images of digits: train() and test() of one's own, tqdm, a plot at the end.
# killed: epoch == 2, after 44
# same: train_losses, test_losses, accuracies, best_accuracy, net.state_dict(), scheduler.get_last_lr()
# history: train_loss is train_losses, test_loss is test_losses, accuracy is accuracies
# two slots, within 1e-3: test_losses, accuracies, net.state_dict()
# %%
import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

import det_native as det

torch.manual_seed(42)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# %%
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
train_loader = DataLoader(TensorDataset(images[:1400], labels[:1400]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(images[1400:], labels[1400:]), batch_size=200)
# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 2 * 2, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def test(model, loader):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            loss += F.cross_entropy(output, target, reduction="sum").item()
            correct += (output.argmax(1) == target).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)
# %%
net = Net().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)

context = det.experimental.pytorch.init()
net, optimizer, scheduler, train_loader, val_loader = context.wrap(net, optimizer, scheduler, train_loader, val_loader)
train_losses, test_losses, accuracies = [], [], []
for epoch in context.epochs(5):
    net.train()
    running_loss = 0.0
    for data, target in tqdm(train_loader, desc=f"epoch {epoch + 1}"):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data), target)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    scheduler.step()
    test_loss, accuracy = test(net, val_loader)
    train_losses.append(running_loss / len(train_loader))
    test_losses.append(test_loss)
    accuracies.append(accuracy)
    context.report(train_loss=train_losses[-1], test_loss=test_loss, accuracy=accuracy)
    print(f"epoch {epoch + 1}: loss {train_losses[-1]:.4f}, test loss {test_loss:.4f}, accuracy {accuracy:.3f}")
# %%
best_accuracy = max(accuracies)
plt.plot(train_losses, label="train")
plt.plot(test_losses, label="test")
plt.legend()
plt.title(f"best accuracy {best_accuracy:.3f}")
plt.show()
