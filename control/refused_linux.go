package control

// refusedMeansEnded: connect(2) is refused only where nobody listens. Elsewhere a
// full queue refuses, too, so that nothing is removed.
const refusedMeansEnded = true
