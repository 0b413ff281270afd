package lifecycle

// enders end what journals list, in this order. Subreapers end their sessions
// themselves, so they come before the session ids; the directories come last,
// when nobody uses them any more.
var enders = []Ender{cgroupEnder, subreaperEnder, refuse(kindFingerprint), sessionEnder, directoryEnder}
