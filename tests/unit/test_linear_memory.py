"""What oneDNN remembers of products is bounded: batches of ever other numbers of rows do not fill a trainer's memory."""

import ctypes
import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes
import torch
from torch import nn
from trainer.fast_layers.linear_layers import fast_linear_layers

libc = ctypes.CDLL(None)
class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena o s h mapped u f used free keep".split()]
libc.mallinfo2.restype = Heap

def used():
    heap = libc.mallinfo2()
    return heap.used + heap.mapped

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 96), nn.Linear(96, 64))
fast_linear_layers(model)
at_first = 0
for number in range(300):
    rows = torch.rand(100 + number, 64, requires_grad=True)
    (model(rows) ** 2).sum().backward()
    model.zero_grad()
    if number == 99:
        at_first = used()
print(used() - at_first)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="only glibc says how much of its heap is in use")
def test_two_hundred_numbers_of_rows_more_keep_next_to_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 4 * 2**20
