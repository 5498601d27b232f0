# Texts of changing length: a Dataset, a vocabulary, a collate function beside its imports, an LSTM, a lambda.
# %%
import re
from collections import Counter

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

import det_native as det
# %%
good = ["great", "lovely", "fine", "warm"]
bad = ["awful", "dull", "cold", "poor"]
texts = [f"A {a} film with a {b} cast{', really' * (i % 3)}." for i, (a, b) in enumerate(
    [(a, b) for words in (good, bad) for a in words for b in words] * 10)]
labels = [int(any(word in text for word in good)) for text in texts]
tokenize = lambda text: re.findall(r"[a-z]+", text.lower())
counts = Counter(word for text in texts for word in tokenize(text))
vocab = {word: i + 1 for i, (word, _) in enumerate(counts.most_common())}

class Reviews(Dataset):
    def __init__(self, texts, labels):
        self.texts, self.labels = texts, labels

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return torch.tensor([vocab.get(word, 0) for word in tokenize(self.texts[i])]), self.labels[i]

def collate(batch):
    ids, labels = zip(*batch)
    return pad_sequence(ids, batch_first=True), torch.tensor(labels, dtype=torch.float32)

class Classifier(nn.Module):
    def __init__(self, size, dim=16):
        super().__init__()
        self.embedding = nn.Embedding(size, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 1)

    def forward(self, ids):
        _, (hidden, _) = self.lstm(self.embedding(ids))
        return torch.squeeze(self.out(hidden[-1]), 1)
# %%
context = det.experimental.pytorch.init()
model = context.wrap_model(Classifier(len(vocab) + 1))
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=0.02))
loss_fn = nn.BCEWithLogitsLoss()
train_loader = DataLoader(Reviews(texts, labels), batch_size=16, shuffle=True, collate_fn=collate)
for ids, target in context.train(train_loader, epochs=2):
    loss = loss_fn(model(ids), target)
    context.backward(loss)
    context.step_optimizer(optimizer, clip_grads=lambda params: nn.utils.clip_grad_norm_(params, 1.0))
    context.report(loss=loss)
