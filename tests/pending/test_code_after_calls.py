"""Does a training call wait? What follows it in its cell says so."""

from __future__ import annotations

import textwrap

import pytest
from in_process import ShellKernel

RETURNS = {
    "alone": "model.fit()",
    "a name for the handle": "history = model.fit()",
    "the handle is printed": "history = model.fit()\nprint(history)",
    "magics of the cell": "%precision 3\nmodel.fit()\n%env NAME=value\n!true",
    "others follow": "x = [1]\nhistory = model.fit()\nx.append(2)\nprint(len(x))",
    "bound anew": "model.fit()\nmodel = Wrapped(2, 2)\nprint(model.weight)",
    "a loop that makes each": "for seed in range(3):\n    net = Wrapped(2, 2)\n    net.fit()",
    "handles of a loop": """
        handles, nets = {}, []
        for seed in range(3):
            net = Wrapped(2, 2)
            nets.append(net)
            handles[seed] = net.fit()
        print(len(handles))
        """,
    "kept in a list for later": """
        kept, by_name = [], {}
        for seed in range(2):
            net = Wrapped(2, 2)
            history = net.fit()
            kept.append((seed, net))
            by_name[seed] = {"net": net, "history": history}
        """,
    "a function that makes one": """
        def trained(seed):
            net = Wrapped(2, 2)
            return net.fit()
        handles = []
        for seed in range(2):
            handles.append(trained(seed))
        """,
    "an if whose other way reads": "if True:\n    model.fit()\nelse:\n    print(model.weight)",
    "a trainer keeps the handle": """
        class Trainer:
            def __init__(self, model):
                self.model, self.name = model, "a"
            def run(self):
                self.history = self.model.fit()
                print(self.name)
        Trainer(Wrapped(2, 2)).run()
        """,
    "the loop by hand": "losses = []\nfor batch in Batches(model):\n    losses.append(model(batch))\nprint(losses)",
    "the loop by hand, counted": "for n, batch in enumerate(Batches(model)):\n    print(model(batch))",
    "a magic around it": "%time model.fit()",
    "a cell magic around it": "%%time\nhistory = model.fit()",
    "captured": "%%capture out\nhistory = model.fit()",
    "two on a line": "x = 1; model.fit(); print(x)",
    "given up": "model.fit(); del model",
}
WAITS = {
    "used": "model.fit()\nprint(model.weight)",
    "used in the same statement": "print(model.fit(), model.weight)",
    "kept in a list that is read": """
        kept = []
        for seed in range(2):
            net = Wrapped(2, 2)
            net.fit()
            kept.append((seed, net))
        print([net.weight for _, net in kept])
        """,
    "kept in a list of another name": "kept = []\nalso = kept\nmodel.fit()\nkept.append(model)\nprint(also[0].weight)",
    "used on its way into a list": "kept = []\nmodel.fit()\nkept.append(model.weight)",
    "the next turn": "for epoch in range(3):\n    model.fit()",
    "the next turn of while": "n = 0\nwhile n < 2:\n    n += 1\n    model.fit()",
    "the test of while": """
        turns = []
        def more():
            model.fit()
            turns.append(1)
            return len(turns) < 2
        while more():
            pass
        """,
    "a comprehension": "histories = [model.fit() for epoch in range(2)]",
    "after the loop": "for seed in range(3):\n    net = Wrapped(2, 2)\n    net.fit()\nprint(net.weight)",
    "bound in one way only": "model.fit()\nif len('a') > 3:\n    model = Wrapped(2, 2)\nprint(model.weight)",
    "a function that reads it": "def score(): return model.weight.sum()\nmodel.fit()\nprint(score())",
    "the caller reads it": "def train(net):\n    net.fit()\ntrain(model)\nprint(model.weight)",
    "the function returns it": "def train(net):\n    net.fit()\n    return net\nnet = train(model)",
    "an except": "try:\n    model.fit()\n    x = 1 / 1\nexcept Exception:\n    print(model.weight)",
    "a finally": "try:\n    model.fit()\nfinally:\n    print(model.weight)",
    "an object that holds it": """
        class Trainer:
            def __init__(self, model):
                self.model = model
            def run(self):
                self.model.fit()
                return self.score()
            def score(self):
                return self.model.weight.sum()
        Trainer(model).run()
        """,
    "after a loop by hand": "for batch in Batches(model):\n    pass\nprint(model.weight)",
    "an outer loop": "for epoch in range(2):\n    for batch in Batches(model):\n        pass\n    print(model.weight)",
    "a magic": "model.fit()\n%timeit -n 1 -r 1 model.weight.sum()",
    "captured, and used": "%%capture out\nmodel.fit()\nprint(model.weight)",
    "no text": "exec('model.fit()')",
    "a thread": """
        import threading
        thread = threading.Thread(target=model.fit)
        thread.start()
        thread.join()
        """,
    "many objects": """
        from det_native.pending import reach
        kept, reach.LIMIT = [[i] for i in range(3000)], 2000
        model.fit()
        print(len(kept))
        reach.LIMIT = 200_000
        """,
}


def _decided(notebook: ShellKernel, cell: str) -> tuple[list[bool], str]:
    notebook.run("model = Wrapped(2, 2)\ndecided.clear()")
    printed = notebook.run(textwrap.dedent(cell).strip("\n"))
    decided = notebook.live("decided")["decided"]
    return [one == "True" for one in decided.strip("[]").split(", ") if one], printed


@pytest.mark.parametrize("case", RETURNS)
def test_a_call_returns_at_once(notebook: ShellKernel, case: str) -> None:
    decided, printed = _decided(notebook, RETURNS[case])
    assert decided, printed
    assert not any(decided)


@pytest.mark.parametrize("case", WAITS)
def test_a_call_waits(notebook: ShellKernel, case: str) -> None:
    decided, printed = _decided(notebook, WAITS[case])
    assert decided, printed
    assert any(decided)
