"""Packing: nothing is lost, what policies promise, and arrays that load back to the same masks."""

import io
import random
import re
import time

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.packing import POLICIES, Example, draw, examples_of, in_groups, pack, read_file, read_text

MIXED = [3, 9, (4, 2, 3), 0, (1, 0), 10, (2, 3, 0, 1), 5, 1]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_example_is_in_exactly_one_sequence(policy):
    examples = examples_of(MIXED)
    packing = pack(examples, 10, policy)
    kept = [example for one in packing.sequences for example in one.examples]
    assert sorted(map(str, kept)) == sorted(str(e) for e in examples if e.tokens)
    assert all(0 <= one.padding < 10 for one in packing.sequences)
    assert packing.waste == pytest.approx(1 - sum(e.tokens for e in examples) / (10 * len(packing.sequences)))


@pytest.mark.parametrize("seed", range(5))
def test_first_and_best_fit_against_their_plain_rules(seed):
    rng = random.Random(seed)
    lengths = [rng.randint(1, 60) for _ in range(200)]
    for policy, choose in (("first_fit_decreasing", lambda fits: fits[0]), ("best_fit", min)):
        room: list[int] = []
        for length in sorted(lengths, reverse=True):
            fits = [(r, i) for i, r in enumerate(room) if r >= length]
            if not fits:
                room.append(100 - length)
            else:
                room[choose(fits)[1]] -= length
        got = pack(examples_of(lengths), 100, policy)
        assert sorted(one.padding for one in got.sequences) == sorted(room)


def test_the_mask_of_a_sequence_is_what_the_forms_mean():
    (one,) = pack([Example(2, (1, 2)), Example(1, (1, 0))], 8).sequences
    document, part = [0, 0, 0, 0, 0, 1, 1, 2], [0, 0, 1, 2, 2, 0, 1, 0]
    want = [[k <= q and document[q] == document[k] < 2 and part[k] in (0, part[q]) for k in range(8)] for q in range(8)]
    assert torch.equal(one.mask.to_dense()[0, 0], torch.tensor(want))
    assert sum(example.pairs for example in one.examples) == one.mask.visible_pairs()
    assert one.position_ids().tolist() == [0, 1, 2, 2, 3, 0, 1, 0]
    assert one.cu_seqlens().tolist() == [0, 5, 7, 8]
    assert pack([Example(3, (2,)), Example(2, ())], 8).sequences[0].text == "causal_document(5, 2)"


def test_the_arrays_load_back_to_the_same_masks():
    packing = pack(draw(1024, "dpo", 3), 1024, "best_fit")
    arrays = np.load(io.BytesIO(packing.npz()), allow_pickle=False)
    mask = fm.load_mask(arrays["startend_row_indices"], kind="startend_row_indices", causal=bool(arrays["causal"]))
    assert mask.equals(fm.ColumnMask.stack([one.mask for one in packing.sequences], "batch"))
    assert arrays["position_ids"].shape == (len(packing.sequences), 1024)
    ends = arrays["cu_seqlens"]
    assert ends[0] == 0 and ends[-1] == 1024 * len(packing.sequences) and (np.diff(ends) > 0).all()


@pytest.mark.parametrize("form, answers", [("sft", 1), ("dpo", 2), ("rm", 6)])
def test_the_papers_recipe(form, answers):
    examples = draw(8192, form, 20, seed=3)
    assert examples == draw(8192, form, 20, seed=3)
    for example in examples:
        length = example.tokens
        assert length >= 128 and len(example.answers) == answers
        low, high = 0.1 * length / (1 + 0.1 * answers), 0.2 * length / (1 + 0.2 * answers)
        assert all(low - 0.5 <= answer <= high + 0.5 for answer in example.answers)
    packing = pack(examples, 8192)
    assert len(packing.sequences) == 20
    assert all(one.padding <= 128 and len(one.examples) <= 10 for one in packing.sequences)


def test_what_is_longer_than_the_context():
    examples = examples_of([(4, 9), 3])
    with pytest.raises(ValueError, match=r"lengths\[0\]: \(4, 9\) is 13 tokens, more than the context of 6; split it, drop"):
        pack(examples, 6)
    parts = pack(examples, 6, too_long="split").sequences
    assert [e for one in parts for e in one.examples] == [Example(4, (2,)), Example(0, (6,)), Example(0, (1,)), Example(3, ())]
    dropped = pack(examples, 6, too_long="drop")
    assert dropped.dropped == 1 and len(dropped.sequences) == 1
    with pytest.raises(ValueError, match="has 2 answers to one prompt and 9 tokens.*cannot be split, only dropped"):
        pack(examples_of([(3, 3, 3)]), 6, too_long="split")


def test_lengths_are_read_from_text_and_files():
    want = [Example(3000, ()), Example(500, (200, 0)), Example(7, ())]
    assert read_text("3000, (500, 200, 0)\n7;") == want
    assert read_file(b"[3000, [500, 200, 0], 7]", "a.json") == want
    assert read_file(b'[3000, {"prompt": 500, "answers": [200, 0]}, 7]', "a.JSON") == want
    assert read_file(b"prompt;chosen;rejected\r\n3000\r\n500;200;0\r\n7\r\n", "a.csv") == want
    assert read_file(b"length\r3000\r500,200,0\r7", "a.csv") == want
    assert read_file(b"3000\n500\t200\t0\n7\n", "a.csv") == want
    assert read_file(b"\xef\xbb\xbfprompt,chosen,rejected\n3000\n500,200,0\n7,,\n\n", "a.csv") == want


@pytest.mark.parametrize("text, said", [
    ("10 000", "10 000 is read as 2 lengths, 10 and 000."),
    ("5000, (300, 10,000)", "10,000 is read as 2 lengths, 10 and 000."),
    ("128 256 1 048 576 9", "1 048 576 is read as 3 lengths, 1, 048 and 576."),
    ("5 300 20 000", "20 000 is read as 2 lengths, 20 and 000."),
    ("128 256 512", ""), ("12 500", ""), ("10, 000", ""), ("1000 000", ""), ("10 0000", ""), ("0 000", ""), ("", ""),
])  # fmt: skip
def test_a_length_in_groups_of_digits_is_told(text, said):
    assert in_groups(text).startswith(said) and bool(in_groups(text)) == bool(said)
    assert ("as 10000 is" in in_groups(text)) == bool(said)
    if said:
        numbers = [n for example in read_text(text) for n in (example.prompt, *example.answers)]
        groups = [int(n) for n in re.split("[ ,]", said.split(" is read")[0])]
        assert any(numbers[i : i + len(groups)] == groups for i in range(len(numbers)))


@pytest.mark.parametrize(
    "read, message",
    [
        (lambda: read_text(""), "lengths: wanted at least one example, got none"),
        (lambda: read_text("3, -4"), "lengths: '-' at character 4 is neither a length"),
        (lambda: read_text("(3, 4"), "a parenthesis is not closed"),
        (lambda: read_text("3, __import__('os')"), "'_' at character 4"),
        (lambda: read_text("9999999"), r"lengths\[0\]: wanted 0 to 1,048,576, got 9,999,999"),
        (lambda: read_file(b"[1, 2.5]", "a.json"), r"lengths\[1\]: wanted a whole number, got 2.5"),
        (lambda: read_file(b"{}", "a.json"), "a.json: wanted a list of lengths, got dict"),
        (lambda: read_file(b"[" * 100000, "a.json"), "a.json: no JSON"),
        (lambda: read_file(b"3\nx\n", "a.csv"), "a.csv: row 2 is 'x'; wanted whole numbers"),
        (lambda: read_file(b"x" * 200_000, "a.csv"), r"a.csv: no .csv file \(field larger"),
        (lambda: read_file(b"100.5\n200\n", "a.csv"), "a.csv: row 1 is '100.5'; wanted whole numbers"),
        (lambda: read_file(b"-5\n200\n", "a.csv"), "a.csv: row 1 is '-5'; wanted whole numbers of 0 or more"),
        (lambda: read_file(b",prompt,answer\n0,300,20\n", "a.csv"), "a.csv: the first column has no name"),
        (lambda: read_file(b'[1, {"a": 1}]', "a.json"), r"lengths\[1\]: wanted {.prompt.: n.*got {'a': 1}"),
        (lambda: read_file(b'[{"prompt": 3, "answers": 5}]', "a.json"), r"lengths\[0\]: wanted {.prompt.: n"),
        (lambda: read_file(b"\xff\xfe", "a.csv"), "a.csv: wanted a .csv or .json file in UTF-8"),
        (lambda: examples_of([()]), r"lengths\[0\]: wanted a length or"),
        (lambda: examples_of([1] * 100_001), "100,001 examples are more than 100,000"),
        (lambda: pack(examples_of([0, (0, 0)]), 8), "lengths: no example is left to pack"),
        (lambda: pack(examples_of([1]), 0), "context: wanted 1 to 1,048,576, got 0"),
        (lambda: pack(examples_of([1]), 8, "sorted"), "policy: wanted one of in_order"),
        (lambda: draw(8192, "ppo", 1), "form: wanted one of sft, dpo, rm, got 'ppo'"),
    ],
)
def test_bad_input_is_refused_by_name(read, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read()


def test_many_examples_pack_in_seconds():
    rng = random.Random(0)
    examples = examples_of(rng.randint(1, 4000) for _ in range(50_000))
    for policy in POLICIES:
        start = time.perf_counter()
        pack(examples, 8192, policy)
        assert time.perf_counter() - start < 10


def test_what_would_be_cut_into_too_many_pieces_is_refused_before_it_is_cut():
    with pytest.raises(ValueError, match=r"lengths\[0\]: split at a context of 1 it is more than 100,000 pieces"):
        pack(examples_of([2**20]), 1, "in_order", "split")
    with pytest.raises(ValueError, match=r"lengths\[1\]: split at a context of 2 the examples are more than 100,000"):
        pack(examples_of([150_000, 150_000]), 2, "in_order", "split")
    with pytest.raises(ValueError, match="more than the context of 10; drop it, or take"):
        pack(examples_of([(10, 1, 1)]), 10, "in_order", "refuse")
