# relu(x @ W + b), 8 x 1024 by 1024 x 1024. W and b are constant in use, so they
# are laid out ahead of time: the library has dense_pack and dense_packed.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def dense(
        x: T.Buffer((8, 1024), "float32"),
        W: T.Buffer((1024, 1024), "float32"),
        b: T.Buffer((1024,), "float32"),
        y: T.Buffer((8, 1024), "float32"),
    ):
        T.func_attr({"layout_free_buffers": [1, 2]})
        product = T.alloc_buffer((8, 1024))
        for i, j, k in T.grid(8, 1024, 1024):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    product[vi, vj] = T.float32(0)
                product[vi, vj] = product[vi, vj] + x[vi, vk] * W[vk, vj]
        for i, j in T.grid(8, 1024):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(product[vi, vj] + b[vj], T.float32(0))
