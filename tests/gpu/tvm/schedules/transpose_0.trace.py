# from tvm import s_tir
def apply_trace(sch: s_tir.Schedule) -> None:
  b0 = sch.get_sblock(name="T_transpose", func_name="main")
  l1, l2, l3 = sch.get_loops(block=b0)
  l4 = sch.fuse(l1, l2, l3, preserve_unit_iters=True)
  v5 = sch.sample_categorical(candidates=[32, 64, 128, 256, 512, 1024], probs=[0.16666666666666666, 0.16666666666666666, 0.16666666666666666, 0.16666666666666666, 0.16666666666666666, 0.16666666666666666], decision=0)
  l6, l7 = sch.split(loop=l4, factors=[None, v5], preserve_unit_iters=True, disable_predication=False)
  sch.bind(loop=l6, thread_axis="blockIdx.x")
  sch.bind(loop=l7, thread_axis="threadIdx.x")
  sch.enter_postproc()