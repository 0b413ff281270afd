package darwin

// stageHalf is the real one.
var stageHalf = confineSelf
