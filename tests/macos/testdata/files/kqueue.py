import os
import select

name = os.open("watched", os.O_RDWR | os.O_CREAT)
queue = select.kqueue()
wanted = select.kevent(name, select.KQ_FILTER_VNODE, select.KQ_EV_ADD | select.KQ_EV_CLEAR, select.KQ_NOTE_WRITE)
queue.control([wanted], 0)
os.write(name, b"x")
assert queue.control([], 1, 10)
