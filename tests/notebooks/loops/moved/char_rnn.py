# A character-level LSTM: batches cut from one text, a hidden state handed on from batch to batch, a sample every epoch.
# killed: epoch == 3, after 3
# same: losses, samples, perplexity, net.state_dict()
# history: loss is losses
# two slots, within 1e-3: losses, net.state_dict()
# %%
import numpy as np
import torch
from torch import nn

import det_native as det

torch.manual_seed(1)
# %%
text = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
""" * 12
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
itos = {i: ch for ch, i in stoi.items()}
encoded = torch.tensor([stoi[ch] for ch in text])
batch_size, seq_len = 8, 16


def get_batches(data):
    n = len(data) // batch_size
    data = data[: n * batch_size].view(batch_size, n)
    for i in range(0, n - seq_len, seq_len):
        yield data[:, i : i + seq_len], data[:, i + 1 : i + seq_len + 1]
# %%
class CharRNN(nn.Module):
    def __init__(self, vocab, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, hidden=None):
        y, hidden = self.lstm(self.embed(x), hidden)
        return self.out(y), hidden


@torch.no_grad()
def sample(net, start="S", length=40):
    net.eval()
    x, hidden, result = torch.tensor([[stoi[start]]]), None, start
    for _ in range(length):
        logits, hidden = net(x, hidden)
        x = logits[:, -1].argmax(1, keepdim=True)
        result += itos[x.item()]
    net.train()
    return result
# %%
net = CharRNN(len(chars))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()

context = det.experimental.pytorch.init()
net, optimizer = context.wrap(net, optimizer)
losses, samples = [], []
for epoch in context.epochs(6):
    hidden = None
    epoch_losses = []
    for x, y in get_batches(encoded):
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden)
        logits, hidden = net(x, hidden)
        loss = criterion(logits.reshape(-1, len(chars)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        epoch_losses.append(loss.item())
    losses.append(np.mean(epoch_losses))
    samples.append(sample(net))
    context.report(loss=losses[-1])
    print(f"epoch {epoch}: loss {losses[-1]:.3f}, {samples[-1]!r}")
# %%
perplexity = float(np.exp(losses[-1]))
print(f"perplexity {perplexity:.2f}")
