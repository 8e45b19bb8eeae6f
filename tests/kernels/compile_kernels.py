"""Compiles the kernels for a GPU that need not be here, exactly as `launch` launches them. Run in a child process.

    python compile_kernels.py ARCH TABLE/DTYPE/HEAD_DIM/PACKING...      (90 large/bf16/128/causal1 large/bf16/128/four)

With tile_runs for the dtype it is the metadata kernels in the blocks of that configuration. The table "gluon" is the
Hopper backend's own kernels; of these the order of matrix instructions, waits and exponentials is told as well.

TRITON_INTERPRET has to be unset: it is read when a kernel is decorated. Every kernel is replaced by a recorder, the
launchers are called with small CPU tensors, and what they passed (descriptors, constants, warps, stages, registers) is
what is compiled. One JSON object a kernel goes to the standard output.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

from flashmask_core.kernels import configs, hopper_launch, launch
from flashmask_core.tiles import tile_runs

PACKINGS = {"causal1": (True, 1), "causal2": (True, 2), "two": (False, 2), "four": (False, 4)}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
TYPE_NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32", torch.int32: "i32"}
OPTIONS = ("num_warps", "num_stages", "maxnreg")
KNOW_NO_PACKING = ("delta_kernel", "row_terms_kernel", "convert_dq_kernel")
SEQLEN = 256
LONG_SEQLEN = 131072


class Recorder:
    """Stands for a kernel: keeps what it is launched with and launches nothing."""

    def __init__(self, kernel, launches: list):
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.launches.append((self.kernel, args, kwargs))


def record(module, names, call) -> list:
    """[(kernel, positional arguments, keyword arguments)] of the kernels `names` of a module while `call` runs."""
    launches, kept = [], {name: getattr(module, name) for name in names}
    try:
        for name, kernel in kept.items():
            setattr(module, name, Recorder(kernel, launches))
        call()
    finally:
        for name, kernel in kept.items():
            setattr(module, name, kernel)
    return launches


def attention_launches(kernel_configs, dtype, head_dim: int, causal: bool, bounds: int) -> list:
    """forward, delta, dkdv and dq of one packing."""
    q, k, v, out, dout = (torch.zeros(2, SEQLEN, 2, head_dim, dtype=dtype) for _ in range(5))
    lse, dlse = (torch.zeros(2, 2, SEQLEN) for _ in range(2))
    vectors = [torch.zeros(1, 1, SEQLEN, dtype=torch.int32) for _ in range(4)]
    runs = torch.zeros(1, 1, tile_runs.MAX_RUNS, 2, dtype=torch.int32)
    tiles = tile_runs.TileRuns(runs, runs, runs)
    mask = dict(causal=causal, bounds=bounds, scale=0.1)

    def call():
        launch.forward(q, k, v, vectors, tiles, **mask, config=kernel_configs.forward)
        launch.backward(dout, dlse, q, k, v, out, lse, vectors, tiles, tiles, **mask, configs=kernel_configs)

    return record(launch, ("forward_kernel", "delta_kernel", "dkdv_kernel", "dq_kernel"), call)


def hopper_launches(dtype, head_dim: int, causal: bool, bounds: int) -> list:
    """forward, backward and the kernels around it."""
    q, k, v, out, dout = (torch.zeros(2, SEQLEN, 2, head_dim, dtype=dtype) for _ in range(5))
    lse, dlse = (torch.zeros(2, 2, SEQLEN) for _ in range(2))
    packed = torch.zeros(1 if causal and bounds == 1 else bounds, 1, 1, SEQLEN, dtype=torch.int32)
    runs = torch.zeros(1, 1, tile_runs.MAX_RUNS, 2, dtype=torch.int32)
    tiles = tile_runs.TileRuns(runs, runs, runs)
    mask = dict(causal=causal, bounds=bounds, scale=0.1)
    hopper_launch._multiprocessors = lambda device: 132

    def call():
        hopper_launch.forward(q, k, v, packed, tiles, **mask)
        hopper_launch.backward(dout, dlse, q, k, v, out, lse, packed, tiles, **mask)

    kernels = ("forward_kernel", "row_terms_kernel", "backward_kernel", "wide_backward_kernel", "convert_dq_kernel")
    return record(hopper_launch, kernels, call)


def tile_runs_launches(kernel_configs, causal: bool, bounds: int) -> list:
    """The metadata kernels for tiles as wide as those of dkdv: both directions at once."""
    vectors, config = [torch.zeros(1, 1, LONG_SEQLEN, dtype=torch.int32) for _ in range(4)], kernel_configs.dkdv

    def call():
        tile_runs.build_tile_runs(
            vectors, seqlen_q=LONG_SEQLEN, seqlen_k=LONG_SEQLEN, causal=causal, bounds=bounds,
            lines=[tile_runs.Lines(config.block_m, config.block_n, True), tile_runs.Lines(128, config.block_n, False)],
        )  # fmt: skip

    return record(tile_runs, ("column_bounds", "line_runs", "line_order"), call)


def source_of(kernel, args, kwargs):
    """(what to compile, compiler options) of a launch, specialised as Triton would."""
    options = {name: kwargs[name] for name in OPTIONS if kwargs.get(name) is not None}
    given = dict(zip(kernel.arg_names, args)) | {n: x for n, x in kwargs.items() if n not in OPTIONS}
    assert set(given) == set(kernel.arg_names), set(given) ^ set(kernel.arg_names)
    signature, constants, attributes = {}, {}, {}
    for i, parameter in enumerate(kernel.params):
        name, x = parameter.name, given[parameter.name]
        if parameter.is_constexpr:
            signature[name], constants[i,] = "constexpr", x
            continue
        if isinstance(x, (TensorDescriptor, GluonDescriptor)):
            layout = f",{x.layout!r}" if isinstance(x, GluonDescriptor) else ""
            signature[name] = f"tensordesc<{TYPE_NAMES[x.base.dtype]}{list(x.block_shape)}{layout}>"
            continue
        if isinstance(x, torch.Tensor):
            signature[name], divisible = f"*{TYPE_NAMES[x.dtype]}", x.data_ptr() % 16 == 0
        elif isinstance(x, int):
            signature[name], divisible = "i32", x % 16 == 0
            assert x != 1 or parameter.do_not_specialize, f"{name} = 1 would be compiled in"
        else:
            signature[name], divisible = "fp32", False
        if divisible and not parameter.do_not_specialize:
            attributes[i,] = [["tt.divisibility", 16]]
    source = GluonASTSource if isinstance(kernel, GluonJITFunction) else ASTSource
    return source(kernel, signature, constants, attributes), options


_INSTRUCTIONS = {"HGMMA": "product", "DEPBAR.LE gsb0, 0x0": "wait 0", "DEPBAR.LE gsb0, 0x1": "wait 1", "MUFU.EX2": "exp"}


def instruction_order(cubin: bytes) -> list[tuple[str, int]]:
    """[(instruction, how often in a row)] of the matrix products, the waits for them and the exponentials."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout
    found = re.findall("|".join(map(re.escape, _INSTRUCTIONS)), text)
    return [(_INSTRUCTIONS[name], len(list(same))) for name, same in groupby(found)]


def compiled(kernel, args, kwargs, target) -> dict:
    """What the compiler and the assembler say of one launch."""
    source, options = source_of(kernel, args, kwargs)
    log = io.StringIO()
    try:
        with contextlib.redirect_stdout(log):  # where the assembler's log is printed
            binary = triton.compile(source, target=target, options=options)
    except Exception as error:
        return dict(error=f"{type(error).__name__}: {str(error)[-1500:]}")
    text = log.getvalue()
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", text)
    order = instruction_order(binary.asm["cubin"]) if isinstance(kernel, GluonJITFunction) else []
    return dict(
        order=order,
        shared_bytes=binary.metadata.shared,
        tensor_columns=getattr(binary.metadata, "tmem_size", None) or 0,
        registers=int(re.search(r"Used (\d+) registers", text)[1]),
        spill_bytes=int(spills[1]) + int(spills[2]),
        warnings=sorted(set(re.findall(r"C7\d\d\d", text))),
    )


def main(arch: str, *specs: str) -> None:
    triton.knobs.nvidia.dump_ptxas_log = True
    triton.knobs.compilation.always_compile = True
    target = GPUTarget("cuda", int(arch), 32)
    done = set()
    for spec in specs:
        table, what, head_dim, packing = spec.split("/")
        causal, bounds = PACKINGS[packing]
        if table == "gluon":
            launches = hopper_launches(DTYPES[what], int(head_dim), causal, bounds)
        else:
            kernel_configs = configs.all_configs()[table][int(head_dim)]["causal" if causal else packing]
            if what == "tile_runs":
                launches = tile_runs_launches(kernel_configs, causal, bounds)
            else:
                launches = attention_launches(kernel_configs, DTYPES[what], int(head_dim), causal, bounds)
        for kernel, args, kwargs in launches:
            if kernel.__name__ in KNOW_NO_PACKING:
                if (kernel.__name__, what, head_dim) in done:
                    continue
                done.add((kernel.__name__, what, head_dim))
            row = dict(kernel=kernel.__name__, table=table, what=what, head_dim=int(head_dim), packing=packing)
            print(json.dumps(row | compiled(kernel, args, kwargs, target)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
