"""Turn a GGUF file into the folder of safetensors that vLLM reads. Runs in vLLM's own environment.

python unpack_gguf.py MODEL.gguf FOLDER
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

source, folder = map(Path, sys.argv[1:])
model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
# The weights are unpacked by now, but the model says that it is quantized, and would not let itself be saved.
model.hf_quantizer = None
model.is_quantized = False
del model.config.quantization_config
model.to(torch.bfloat16).save_pretrained(folder)
AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
