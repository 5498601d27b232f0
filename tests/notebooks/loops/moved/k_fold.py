# Cross-validation: a model, an optimizer and loaders for each fold, one loop over epochs in the loop over folds.
# killed: fold == 1 and epoch == 2, after 20
# same: results, average, network.state_dict()
# two slots, within 1e-3: results, network.state_dict()
# %%
import numpy as np
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

import det_native as det

torch.manual_seed(42)
k_folds, num_epochs = 3, 6
results = {}
# %%
X, y = load_iris(return_X_y=True)
dataset = TensorDataset(torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y))
kfold = KFold(n_splits=k_folds, shuffle=True, random_state=0)
loss_function = nn.CrossEntropyLoss()


def reset_weights(m):
    if isinstance(m, nn.Linear):
        m.reset_parameters()
# %%
for fold, (train_ids, test_ids) in enumerate(kfold.split(X)):
    print(f"FOLD {fold}")
    trainloader = DataLoader(dataset, batch_size=10, sampler=SubsetRandomSampler(train_ids))
    testloader = DataLoader(dataset, batch_size=10, sampler=SubsetRandomSampler(test_ids))
    network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    network.apply(reset_weights)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    context = det.experimental.pytorch.init()
    network, optimizer, trainloader, testloader = context.wrap(network, optimizer, trainloader, testloader)

    for epoch in context.epochs(num_epochs):
        network.train()
        current_loss = 0.0
        for inputs, targets in trainloader:
            optimizer.zero_grad()
            loss = loss_function(network(inputs), targets)
            loss.backward()
            optimizer.step()
            current_loss += loss.item()
        context.report(loss=current_loss / len(trainloader))
        print(f"epoch {epoch + 1}: {current_loss / len(trainloader):.4f}")

    network.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for inputs, targets in testloader:
            predicted = network(inputs).argmax(1)
            total += targets.size(0)
            correct += (predicted == targets).sum().item()
    results[fold] = 100.0 * correct / total
    print(f"Accuracy for fold {fold}: {results[fold]:.1f} %")
# %%
average = sum(results.values()) / len(results)
print(f"Average: {average:.1f} %, spread {np.std(list(results.values())):.1f}")
