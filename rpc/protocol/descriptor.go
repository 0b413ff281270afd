package protocol

// Direction says who sends a message.
type Direction string

const (
	// ToSidecar is sent by the editor.
	ToSidecar Direction = "editor → sidecar"
	// ToEditor is sent by the sidecar.
	ToEditor Direction = "sidecar → editor"
	// BothWays is sent by either.
	BothWays Direction = "editor ↔ sidecar"
)

// Request is a method that is answered with R or an error.
type Request[P, R any] struct {
	Method    string
	Direction Direction
}

// Notification is a method without an answer.
type Notification[P any] struct {
	Method    string
	Direction Direction
}
