package broken

var x int = "no number"
