package review

// whyProtected is the reason of a protected path.
const whyProtected = "it is protected: programs outside the sandbox act upon it without asking"
