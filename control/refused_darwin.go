package control

// refusedMeansEnded: connect(2) is also refused if the listener's queue is full.
const refusedMeansEnded = false
