"""The names of tasks and engines. Needs no torch, so that a command line can be read at once."""

TASKS = ("sft", "lora", "dpo", "rm")
TASK_LABELS = {"sft": "SFT", "lora": "LoRA", "dpo": "DPO", "rm": "Reward model"}
FORMS = {"sft": "sft", "lora": "sft", "dpo": "dpo", "rm": "rm"}
"""Task -> the form of its examples."""
ENGINE_LABELS = {"flashmask": "FlashMask", "dense": "SDPA, dense mask", "flex": "FlexAttention"}
PAPER_SPEEDUPS = (1.65, 3.22)
"""Training throughput over a dense mask in SFT, LoRA, DPO and RM that the paper reports (arXiv 2410.01359, abstract)."""
