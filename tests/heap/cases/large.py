import numpy as np, pandas as pd, torch, random, collections, itertools
big = np.ones(1 << 20); part = big[5:10]
million = list(range(100_000)); table = {i: [i] for i in range(20_000)}
class Rec:
    def __init__(self, i): self.i = i; self.tags = []
recs = [Rec(i) for i in range(5_000)]
df = pd.DataFrame(np.random.default_rng(0).random((20_000, 5)), columns=list("abcde")); df["t"] = [f"row {i}" for i in range(20_000)]; df["d"] = pd.to_datetime("2024-01-01"); df["c"] = pd.Categorical(["u", "v"] * 10_000); col = df["a"]
cat = pd.Series(["x", "y"], dtype="category"); idx = df.index; small = pd.DataFrame({"n": [1, 2]}); log = pd.DataFrame(columns=["e", "l"])
words = {"fig", "pear", "plum", "kiwi", "lime"}; vocab = {w: i for i, w in enumerate(sorted(words))}; from_set = [w for w in words]; counts = dict.fromkeys(words, 0)
replay = collections.deque(maxlen=10_000); torch.manual_seed(0); emb = torch.nn.Embedding(10_000, 16); link = None
for i in range(30_000): link = (i, link)
class Chain: pass
def length(link):
    count = 0
    while link is not None: link, count = getattr(link, "next", None), count + 1
    return count
head = Chain(); cur = head
for i in range(20_000): cur.next = Chain(); cur = cur.next
cur.next = None

#! train
million.append(7); million[3] = "x"; table[5].append(1); del table[7]; recs[9].tags.append(1); recs.append(Rec(-1)); recs[3] = recs[4]
df.loc[3, "a"] = 9.0; df["new"] = df.b * 2; small["n"] += 1; small = small.assign(m=1); log.loc[len(log)] = [0, 0.5]; log.loc[len(log)] = [1, 0.25]; df["t"] = df["t"].str.upper(); cat = cat.cat.add_categories("z")
part[1] = 4; counts["fig"] += 3; vocab["new"] = 9; from_set2 = sorted(from_set)
for i in range(20_000): replay.append((np.full(4, i, "f"), i))
with torch.no_grad(): emb.weight[5] += 1
cur.next = Chain(); cur.next.v = 1; fresh_chain = Chain(); c2 = fresh_chain
for i in range(20_000): c2.next = Chain(); c2 = c2.next

#! check
million[-1], million[3], len(million), table[5], 7 in table, recs[9].tags, len(recs), recs[-1].i, recs[3] is recs[4]
df.loc[3, "a"], df.new.sum().round(6), small, log, df["t"].iloc[2], cat.cat.categories.tolist(), df.dtypes.tolist(), df.shape
big[6], part, np.shares_memory(big, part), big.sum()
sorted(counts.items()), vocab["new"], sorted(from_set2)
len(replay), replay[-1][0], replay[0][1], emb.weight[5].sum().item().__round__(4)
cur.next.v, type(cur.next) is Chain, c2 is not None, head is not None, length(fresh_chain), length(head)
link[0]
