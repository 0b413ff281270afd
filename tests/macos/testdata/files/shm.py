from multiprocessing import shared_memory

block = shared_memory.SharedMemory(create=True, size=16)
again = shared_memory.SharedMemory(name=block.name)
again.buf[0] = 7
assert block.buf[0] == 7
again.close()
block.close()
block.unlink()
