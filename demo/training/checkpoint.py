"""Weights on disk, in the form that vLLM and transformers read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from .model import Shape, Translator
from .tokenizer import END, PAD, id_of, load_tokenizer

WEIGHTS = "model.safetensors"


def config_of(shape: Shape, end: int, pad: int) -> dict[str, object]:
    """Return config.json of a Qwen3ForCausalLM, with rotary base for old and new readers."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "intermediate_size": shape.mlp,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.theta},
        "rms_norm_eps": shape.epsilon,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "initializer_range": 0.02,
        "bos_token_id": None,
        "eos_token_id": end,
        "pad_token_id": pad,
        "dtype": "bfloat16",
        "torch_dtype": "bfloat16",
    }


def generation_config_of(end: int, pad: int) -> dict[str, object]:
    """Return generation_config.json, for greedy decoding."""
    return {"do_sample": False, "eos_token_id": end, "pad_token_id": pad, "max_new_tokens": 256}


def write_model(
    state: dict[str, Tensor], shape: Shape, tokenizer_folder: Path, folder: Path
) -> None:
    """Write weights in bfloat16, the configuration and the tokenizer, as vLLM serves them."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: one.detach().cpu().bfloat16().contiguous() for name, one in state.items()}
    save_file(weights, str(folder / WEIGHTS), metadata={"format": "pt"})
    tokenizer = load_tokenizer(tokenizer_folder)
    end, pad = id_of(tokenizer, END), id_of(tokenizer, PAD)
    _write_json(folder / "config.json", config_of(shape, end, pad))
    _write_json(folder / "generation_config.json", generation_config_of(end, pad))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer_folder / name, folder / name)


def read_model(folder: Path, device: torch.device) -> Translator:
    """Read a model of `write_model`, in bfloat16, ready to generate."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = Translator(_shape_of(config))
    model.load_state_dict(load_file(str(folder / WEIGHTS)))
    model.to(device, torch.bfloat16)
    model.eval()
    return model


def _shape_of(config: dict[str, object]) -> Shape:
    names = {
        "vocabulary": "vocab_size",
        "hidden": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head": "head_dim",
        "mlp": "intermediate_size",
        "context": "max_position_embeddings",
    }
    return Shape(**{field: int(str(config[name])) for field, name in names.items()})


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
