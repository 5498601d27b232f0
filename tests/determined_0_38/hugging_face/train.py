"""A language model of a few weights, made from a configuration, that transformers trains."""

import determined as det
import determined.transformers
import torch
import transformers


class Words(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict:
        words = (torch.arange(8) + index) % 16
        return {"input_ids": words, "labels": words}


def main() -> None:
    (arguments,) = transformers.HfArgumentParser(transformers.TrainingArguments).parse_args_into_dataclasses()
    info = det.get_cluster_info()
    for name, value in info.trial.hparams["training_arguments"].items():
        setattr(arguments, name, float(value))
    distributed = det.core.DistributedContext.from_torch_distributed()
    config = transformers.GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1)
    with det.core.init(distributed=distributed) as context:
        callback = det.transformers.DetCallback(context, arguments)
        trainer = transformers.Trainer(
            transformers.GPT2LMHeadModel(config),
            arguments,
            train_dataset=Words(),
            eval_dataset=Words(),
            callbacks=[callback],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    main()
