package effects

// system is the key of gitconfig.Programs.
const system = "linux"
