"""Training end to end: a Llama-shaped decoder, the losses of SFT, LoRA, DPO and reward models, and their throughput."""
