import torch, torch.nn as nn, copy, torch.nn.utils.prune as prune, math
from torch.nn.utils.parametrizations import weight_norm
torch.manual_seed(3)
class Net(nn.Module):
    def __init__(self): super().__init__(); self.body = nn.ModuleList([nn.Linear(4, 4)]); self.head = nn.Linear(4, 1); self.calls = 0; self.bn = nn.BatchNorm1d(4)
    def forward(self, x):
        self.calls += 1
        for b in self.body: x = torch.relu(b(x))
        return self.head(self.bn(x))
net = Net(); ema = copy.deepcopy(net); x = torch.randn(32, 4); y = x.sum(1, keepdim=True)
opt = torch.optim.AdamW(net.parameters(), 0.01); plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
swa = torch.optim.swa_utils.AveragedModel(net); bias = net.head.bias; seen = []
pruned = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)); popt = torch.optim.SGD(pruned.parameters(), 0.05, momentum=0.9); sched = torch.optim.lr_scheduler.OneCycleLR(popt, 0.1, total_steps=40)
wn = nn.Sequential(nn.Linear(4, 1)); frozen = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
for p in frozen[0].parameters(): p.requires_grad = False
fopt = torch.optim.Adam([p for p in frozen.parameters() if p.requires_grad], 0.01)
enc = nn.Embedding(6, 4); dec = nn.Linear(4, 6, bias=False); dec.weight = enc.weight; topt = torch.optim.SGD(enc.parameters(), 0.1)
grads = {}; handles = []
lbfgs_net = nn.Linear(4, 1); lb = torch.optim.LBFGS(lbfgs_net.parameters(), max_iter=5)
best = {"loss": math.inf, "state": None}; scaler = torch.amp.GradScaler("cpu", enabled=False); gen = torch.Generator().manual_seed(4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8, shuffle=True, generator=gen)
observer = nn.Module(); observer.register_buffer("low", torch.tensor([9.0])); low = observer.low; double = nn.Linear(4, 1); gnet = Net(); gopt = torch.optim.AdamW(gnet.parameters(), 0.01)

#! train
for epoch in range(4):
    for a, b in loader:
        loss = (net(a) - b).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), net.parameters()): p.mul_(0.9).add_(q, alpha=0.1)
        swa.update_parameters(net)
        l2 = pruned(a).sub(b).pow(2).mean(); popt.zero_grad(); l2.backward(); popt.step(); sched.step()
    plateau.step(loss.item()); seen.append(loss.detach())
    if loss.item() < best["loss"]: best = {"loss": loss.item(), "state": copy.deepcopy(net.state_dict())}
    if epoch == 1:
        new = nn.Linear(4, 4); gnet.body.append(new); gopt.add_param_group({"params": new.parameters(), "lr": 0.001})
        prune.l1_unstructured(pruned[0], "weight", amount=0.5)
        wn[0] = weight_norm(wn[0])
        for p in frozen[0].parameters(): p.requires_grad = True
        fopt.add_param_group({"params": list(frozen[0].parameters())})
        handles.append(net.head.register_forward_hook(lambda m, i, o: grads.setdefault("n", []).append(1)))
    gl = (gnet(x) - y).pow(2).mean(); gopt.zero_grad(); gl.backward(); gopt.step()
    l3 = frozen(x).sub(y).pow(2).mean(); fopt.zero_grad(); l3.backward(); fopt.step()
    l4 = dec(enc(torch.arange(6))).pow(2).mean(); topt.zero_grad(); l4.backward(); topt.step()
    def closure():
        lb.zero_grad(); l = lbfgs_net(x).sub(y).pow(2).mean(); l.backward(); return l
    lb.step(closure)
double = double.double(); observer.low.resize_(3).copy_(torch.tensor([1.0, 2.0, 3.0]))
late = torch.optim.SGD(net.parameters(), 0.5, momentum=0.5); late_s = torch.optim.lr_scheduler.StepLR(late, 1)
net.eval()

#! check
[round(v.sum().item(), 5) for v in net.state_dict().values()], net.calls, len(net.body), net.training
[round(v.sum().item(), 5) for v in ema.state_dict().values()]
[round(v.float().sum().item(), 5) for v in swa.state_dict().values()]
gopt.param_groups[0]["lr"], len(gopt.param_groups), gopt.param_groups[1]["params"][0] is gnet.body[1].weight, len(gopt.state), round(sum(s["exp_avg"].sum().item() for s in gopt.state.values()), 5), len(gnet.body), round(gnet(x).sum().item(), 4)
sched.last_epoch, sched.optimizer is popt, plateau.best, plateau.num_bad_epochs, [round(v.item(), 5) for v in seen], bias is net.head.bias
list(pruned.state_dict()), (pruned[0].weight == 0).sum().item(), round(pruned(x).sum().item(), 5), len(popt.state)
[k for k in wn.state_dict()], type(wn[0]).__name__, round(wn(x).sum().item(), 5)
[p.requires_grad for p in frozen.parameters()], len(fopt.param_groups), round(frozen(x).sum().item(), 5), fopt.param_groups[1]["params"][0] is frozen[0].weight
dec.weight is enc.weight, round(enc.weight.sum().item(), 5), topt.param_groups[0]["params"][0] is enc.weight
round(lbfgs_net(x).sum().item(), 5), sorted(lb.state[lbfgs_net.weight])
round(best["loss"], 6), round(best["state"]["head.weight"].sum().item(), 6)
net(x).sum().item().__round__(4), len(grads["n"]), handles[0].remove(), net(x) is None, len(grads["n"])
torch.rand(1, generator=gen).item(), double.weight.dtype
late.param_groups[0]["params"][0] is net.body[0].weight, late.step() is None, late_s.step(), round(popt.param_groups[0]['lr'], 7), late.param_groups[0]["lr"], late_s.optimizer is late
(opt.zero_grad(), net.train(), net(x).sub(y).pow(2).mean().backward(), opt.step(), sched.step(), round(sum(p.sum().item() for p in net.parameters()), 4))[-1]
(closure().item().__round__(5), closure.__globals__ is globals())
l3.item().__round__(5)
low is observer.low, low.tolist(), low.resize_(4).numel()
