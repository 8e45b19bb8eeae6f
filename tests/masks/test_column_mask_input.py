"""What ColumnMask accepts as input besides tensors, and how it names what it does not."""

import pickle

import numpy as np
import pytest
import torch

import flashmask_core as fm


@pytest.mark.parametrize("value", [None, "abc", object()], ids=["None", "text", "object"])
def test_what_is_no_array_is_named(value):
    with pytest.raises(TypeError, match="startend_row_indices: wanted a tensor or an array of numbers, got"):
        fm.ColumnMask.from_startend_row_indices(value, causal=True)
    with pytest.raises(TypeError, match="visible: wanted a tensor or an array of numbers, got"):
        fm.ColumnMask.from_dense(value)


def test_sparse_tensors_are_refused():
    with pytest.raises(TypeError, match="visible: wanted a dense tensor, got one of layout torch.sparse_coo"):
        fm.ColumnMask.from_dense(torch.ones(3, 3).bool().to_sparse())


def test_arrays_of_any_stride_and_nested_lists():
    visible = np.tril(np.ones((5, 5), bool))
    flipped = fm.ColumnMask.from_dense(visible[::-1, ::-1])
    assert torch.equal(flipped.to_dense()[0, 0], torch.from_numpy(visible[::-1, ::-1].copy()))
    assert fm.ColumnMask.from_dense(visible.tolist()).equals(fm.mask("causal", 5))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (2, 1, 0, 3)], ids=str)
def test_masks_without_queries_or_keys_make_the_round_trip(shape):
    visible = torch.ones(shape, dtype=torch.bool)
    mask = fm.ColumnMask.from_dense(visible)
    assert mask.to_dense().shape[-2:] == shape[-2:]
    indices, causal = mask.to_startend_row_indices()
    assert fm.ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=shape[-2]).equals(mask)


def test_lengths_are_integers_of_any_kind_within_limits():
    indices = torch.full((1, 1, 4, 1), 4)
    mask = fm.ColumnMask.from_startend_row_indices(indices, causal=True, seqlen_q=np.int64(4))
    assert mask.equals(fm.mask("causal", 4))
    with pytest.raises(ValueError, match=r"seqlen_q: wanted a length from 0 to 2\*\*30 - 1, got 2147483648"):
        fm.ColumnMask.from_startend_row_indices(indices, causal=True, seqlen_q=2**31)
    with pytest.raises(TypeError, match="seqlen_q: wanted an int, got bool"):
        fm.ColumnMask.from_startend_row_indices(indices, causal=True, seqlen_q=True)


def test_stack_and_equals_want_masks():
    mask = fm.mask("causal", 4)
    for wrong in ([1, 2], ["x"], mask):
        with pytest.raises(TypeError, match="masks: wanted a list of ColumnMask"):
            fm.ColumnMask.stack(wrong, "batch")
    with pytest.raises(TypeError, match="other: wanted a ColumnMask, got NoneType"):
        mask.equals(None)


def test_errors_cross_process_borders():
    with pytest.raises(fm.NotRepresentableError) as caught:
        fm.mask("(q != 3) & (q != 5) & (q != 7)", 9)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.columns, again.max_runs) == (str(caught.value), list(range(9)), 3)
    with pytest.raises(fm.MaskSyntaxError) as caught:
        fm.parse("causal & &")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.text, again.position) == (str(caught.value), caught.value.text, caught.value.position)
