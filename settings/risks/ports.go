package risks

// Obeying are ports of programs that carry out what whoever connects says.
var Obeying = map[uint16]string{
	1234: "a debugger such as gdbserver", 2345: "Go's debugger", 2375: "Docker", 2376: "Docker", 2377: "Docker",
	5005: "Java's debugger", 5678: "Python's debugger", 5858: "Node's debugger", 6000: "the X server",
	8888: "Jupyter", 9222: "a browser's debugger", 9229: "Node's debugger", 9230: "Node's debugger",
	9515: "a browser's driver",
}
