# A text classifier with EmbeddingBag and a collate function; predict(), from a cell above the loop, is used below it.
# plain: the same losses
# same: answers, test_accuracy, similar, model.state_dict(), experiment_losses
# %%
import random
from collections import Counter

import torch
from torch import nn
from torch.utils.data import DataLoader

import det_native as det

context = det.experimental.pytorch.init()
torch.manual_seed(0)
random.seed(0)
# %%
TOPICS = {
    "sport": "match team goal coach season win league player".split(),
    "money": "bank market stock trade profit price share fund".split(),
    "space": "rocket orbit moon planet launch star crew probe".split(),
}
FILLER = "the a of in on with new today after last".split()
names = list(TOPICS)

def make_text():
    topic = random.choice(names)
    words = random.choices(TOPICS[topic], k=3) + random.choices(FILLER, k=random.randint(2, 6))
    random.shuffle(words)
    return names.index(topic), " ".join(words)

rows = [make_text() for _ in range(500)]
train_rows, test_rows = rows[:400], rows[400:]
counter = Counter(word for _, text in train_rows for word in text.split())
vocab = {"<unk>": 0} | {word: i for i, (word, _) in enumerate(counter.most_common(), 1)}
text_pipeline = lambda text: [vocab.get(word, 0) for word in text.lower().split()]

def collate_batch(batch):
    labels, texts, offsets = [], [], [0]
    for label, text in batch:
        labels.append(label)
        ids = torch.tensor(text_pipeline(text), dtype=torch.int64)
        texts.append(ids)
        offsets.append(len(ids))
    return torch.tensor(labels), torch.cat(texts), torch.tensor(offsets[:-1]).cumsum(0)
# %%
class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim)
        self.fc = nn.Linear(embed_dim, num_class)

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))

model = context.wrap_model(TextClassificationModel(len(vocab), 16, len(names)))
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=0.05))

def predict(text):
    with torch.no_grad():
        output = model(torch.tensor(text_pipeline(text)), torch.tensor([0]))
    return names[output.argmax(1).item()]
# %%
loader = DataLoader(train_rows, batch_size=32, shuffle=True, collate_fn=collate_batch)
for label, text, offsets in context.train(loader, epochs=3):
    loss = nn.functional.cross_entropy(model(text, offsets), label)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
# %%
answers = [predict(t) for t in ("the team has a new coach", "Rocket to the moon today", "a bank with profit")]
print(answers)
# %%
test_accuracy = sum(predict(text) == names[label] for label, text in test_rows) / len(test_rows)
print(f"accuracy on new texts: {test_accuracy:.2f}")
assert test_accuracy > 0.8
# %%
vectors = nn.functional.normalize(model.embedding.weight.detach(), dim=1)
similar = {word: [list(vocab)[i] for i in (vectors @ vectors[vocab[word]]).topk(4).indices] for word in ("goal", "star")}
experiment_losses = list(context.experiment.history["loss"])
similar
