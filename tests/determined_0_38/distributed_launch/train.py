"""Two processes, started by the launch layer, train a line together."""

import argparse

import determined as det
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batches", type=int, default=4)


def main(batches: int) -> None:
    torch.distributed.init_process_group("gloo")
    distributed = det.core.DistributedContext.from_torch_distributed()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.arange(8.0).reshape(8, 1)[distributed.rank :: distributed.size] / 8
    with det.core.init(distributed=distributed) as context:
        for batch in range(1, batches + 1):
            optimizer.zero_grad()
            loss = ((model(inputs) - 3 * inputs) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses = context.distributed.gather(loss.item())
            if losses is not None:
                context.train.report_training_metrics(batch, {"loss": sum(losses) / len(losses)})
            if context.preempt.should_preempt():
                break
        if losses is not None:
            context.train.report_validation_metrics(batch, {"loss": sum(losses) / len(losses)})
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(parser.parse_args().batches)
