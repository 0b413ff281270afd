package darwin

// stageHalf is the real part in the stage.
var stageHalf = confineSelf
