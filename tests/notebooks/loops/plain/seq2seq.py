# Seq2seq with teacher forcing: two models and two optimizers, Python's random in the loop, batches made by a function.
# %%
import random

import torch
import torch.nn as nn

random.seed(5)
torch.manual_seed(5)
SOS, EOS, VOCAB, LENGTH = 0, 1, 12, 5
teacher_forcing_ratio = 0.5
# %%
def make_batch(n, generator):
    """A sequence, and the same backwards."""
    source = torch.randint(2, VOCAB, (n, LENGTH), generator=generator)
    target = torch.cat([source.flip(1), torch.full((n, 1), EOS)], 1)
    return source, target


generator = torch.Generator().manual_seed(0)
train_batches = [make_batch(32, generator) for _ in range(40)]
test_source, test_target = make_batch(64, generator)


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, source):
        return self.gru(self.embedding(source))[1]


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, VOCAB)

    def forward(self, token, hidden):
        output, hidden = self.gru(self.embedding(token), hidden)
        return self.out(output[:, 0]), hidden
# %%
def decode(decoder, hidden, target, forced):
    token = torch.full((len(target), 1), SOS)
    outputs = []
    for i in range(target.shape[1]):
        logits, hidden = decoder(token, hidden)
        outputs.append(logits)
        token = target[:, i : i + 1] if forced else logits.argmax(1, keepdim=True)
    return torch.stack(outputs, 1)


@torch.no_grad()
def evaluate(encoder, decoder):
    logits = decode(decoder, encoder(test_source), test_target, forced=False)
    return (logits.argmax(2) == test_target).float().mean().item()
# %%
encoder, decoder = Encoder(48), Decoder(48)
enc_opt = torch.optim.Adam(encoder.parameters(), lr=0.01)
dec_opt = torch.optim.Adam(decoder.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()

plot_losses, accuracies, forced_count = [], [], 0
for epoch in range(6):
    print_loss_total = 0
    for source, target in train_batches:
        enc_opt.zero_grad()
        dec_opt.zero_grad()
        use_teacher_forcing = random.random() < teacher_forcing_ratio
        forced_count += use_teacher_forcing
        logits = decode(decoder, encoder(source), target, use_teacher_forcing)
        loss = criterion(logits.reshape(-1, VOCAB), target.reshape(-1))
        loss.backward()
        enc_opt.step()
        dec_opt.step()
        print_loss_total += loss.item()
    plot_losses.append(print_loss_total / len(train_batches))
    accuracies.append(evaluate(encoder, decoder))
    print(f"{epoch}: {plot_losses[-1]:.4f} {accuracies[-1]:.3f} (forced {forced_count} times)")
# %%
guess = decode(decoder, encoder(test_source[:3]), test_target[:3], forced=False).argmax(2)
for source, answer in zip(test_source[:3], guess):
    print(source.tolist(), "->", answer.tolist())
