"""Fine-tuning with LoRA by transformers.Trainer and Opacus."""

import secrets

import torch
import transformers
from opacus import PrivacyEngine
from peft import LoraConfig, get_peft_model
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import oraudit  # the audit


class ZeroGrad(transformers.TrainerCallback):
    """The Trainer zeroes the model's gradients, but not those of single examples."""

    def on_optimizer_step(self, *_, optimizer, **__):
        optimizer.zero_grad()


def main(folder="trainer_output"):
    words = torch.randint(100, (400, 12))
    examples = [{"input_ids": row, "labels": row[0] % 2} for row in words]
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=100, intermediate_size=64, **size)
    model = transformers.BertForSequenceClassification(config)  # yours: from_pretrained(...)
    lora = LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
    model = get_peft_model(model, lora).train()
    _, optimizer, private_loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
        data_loader=DataLoader(examples, batch_size=40),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        wrap_model=False,  # the Trainer wants the model itself
    )
    audit = oraudit.attach(optimizer, model, private_loader)  # the audit

    class PrivateTrainer(transformers.Trainer):
        def get_train_dataloader(self):
            return private_loader  # the Trainer's own would shuffle

    settings = {"seed": secrets.randbelow(2**32)}  # of the noise, too: the Trainer's default is 42
    settings |= {"logging_strategy": "no", "report_to": "none"}  # what it logs has no noise
    settings |= {"max_grad_norm": 0, "max_steps": 60, "use_cpu": True, "disable_tqdm": True}
    PrivateTrainer(
        model=model,
        args=transformers.TrainingArguments(folder, **settings),
        optimizers=(optimizer, None),
        callbacks=[ZeroGrad],
        compute_loss_func=lambda out, labels, **_: cross_entropy(out.logits, labels),
    ).train()
    result = audit.result()  # the audit
    print(result)  # the audit
    return result


if __name__ == "__main__":
    main()
